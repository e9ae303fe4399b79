//! Fencing numbers over several nodes: as they are, and as they must not be.

mod as_they_are;
mod broken;
