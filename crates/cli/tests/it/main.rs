//! The command `tenure`, run as its users run it, against real servers.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test reports trouble by failing"
)]

mod codes;
mod command;
mod durations;
mod lost;
mod nested;
mod outage;
mod outputs;
mod paused;
mod quorum;
mod readme;
mod renewed;
mod report;
mod script;
mod several;
mod signals;
mod store;
mod terminal;
mod tool;
mod usage;
mod waiting;
