//! Servers that forget: the rule as it is, and the simpler ones that fail.

mod as_it_is;
mod broken;
