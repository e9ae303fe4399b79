//! The command `tenure`, run as its users run it, against real servers.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test reports trouble by failing"
)]

mod as_found;
mod below;
mod codes;
mod command;
mod data;
mod durations;
mod first;
mod leavers;
mod lost;
mod muted;
mod nested;
mod outage;
mod outputs;
mod paused;
mod quorum;
mod readme;
mod renewed;
mod report;
mod rights;
mod scarce;
mod script;
mod setups;
mod several;
mod shown;
mod signals;
mod store;
mod terminal;
mod tool;
mod usage;
mod waiting;
