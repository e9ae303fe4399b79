//! Faults of other locks from public trackers: one test per case, under its number.
//!
//! What belongs to the command is tested there.

mod ownership;
mod renewal;
mod results;
mod threads;
mod waiting;
