//! Faults of other locks, from public trackers. `docs/origins.md` names the source of each test.
//!
//! Cases about the command `tenure` are tested in its crate.

mod ownership;
mod renewal;
mod results;
mod threads;
mod waiting;
