//! Servers that forget, searched state by state: three servers, each with a real
//! [`Row`](tenure_core::Row) and a real marker, and clients whose votes are counted by the real
//! [`Attempt`](tenure_core::Attempt).
//!
//! # What can happen
//!
//! A client without any memory asks all servers, each at any time or never, and holds the lock when
//! a majority grants it; it renews, gives its key again to a server that has lost it, releases, or
//! ends without a word. One whose lease ran out may prove that its keys are there still, or take
//! the lease up again by its token. A server restarts with its data or without, becomes a replica
//! of another or of an empty server and a primary again, is flushed, loses its marker, or has its
//! clock set forward while no lock is on it.
//!
//! # What must hold
//!
//! No two clients believe that they hold the lock ([`Kind::TwoBelieve`]); and when nothing more
//! goes wrong, a client gets it within the span and a TTL ([`Kind::Stuck`]).
//!
//! # Why the states are few enough
//!
//! Time is what is left, in ticks. A request and its reply are one step, and a release reaches all
//! servers at once: late requests of dead attempts are left out. Identities matter by equality
//! alone, and servers and clients are all alike.
//!
//! [`Kind::TwoBelieve`]: crate::Kind::TwoBelieve
//! [`Kind::Stuck`]: crate::Kind::Stuck

mod client;
mod config;
mod fault;
mod model;
mod print;
mod server;
mod state;
mod trace;

pub use config::{ForgettingConfig, ForgettingFault, ForgettingRule};

use self::{model::ForgettingModel, print::print};
use crate::{Limits, Report, search::search_world};

/// Searches the states of clients at three servers that forget, breadth first, so that what is
/// found is found by a shortest way.
#[must_use]
pub fn search_forgetting(config: &ForgettingConfig, limits: Limits) -> Report {
    search_world(&ForgettingModel::new(config.clone()), limits, print)
}
