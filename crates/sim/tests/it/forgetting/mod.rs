//! Servers that forget: the rule as it is, and the simpler ones that fail.

mod broken_rules;
mod rule;
