//! The command `tenure`, run as its users run it, against real servers.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test reports trouble by failing"
)]

mod codes;
mod command;
mod descendants;
mod documents;
mod durations;
mod escaping;
mod foreign_data;
mod inherited;
mod loss;
mod nested;
mod outage;
mod outputs;
mod outside_group;
mod pid_1;
mod quorum;
mod renewal;
mod report;
mod rights;
mod script;
mod setups;
mod several_servers;
mod shortage;
mod signals;
mod stopped;
mod store;
mod terminal;
mod tool;
mod unread_stderr;
mod usage;
mod waiting;
