//! Fencing numbers over several nodes: as they are, and as they must not be.

mod broken_schemes;
mod scheme;
