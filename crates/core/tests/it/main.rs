//! The scripts on real servers mean what the model in plain Rust says.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "the helpers of tests fail as the tests do"
)]

mod fairness;
mod forms;
mod listeners;
mod model;
mod mutants;
mod node;
mod property;
mod scripts;
mod steps;
