//! Fencing numbers over several nodes, searched state by state: three nodes, each a real
//! [`Row`](tenure_core::Row), and real [`Attempt`](tenure_core::Attempt)s at them.
//!
//! # What can happen
//!
//! An attempt begins and asks all nodes. Each request is carried out at any time, in any order, or
//! never; each reply arrives at any time later, or never. An attempt that waits for an equal number
//! has waited long enough. Time limits are over, where that is asked for. A client crashes or stops
//! waiting, at any time; whatever it asked may still be carried out. A holder gives up, and its
//! releases are carried out, or its keys end. Dishonest time lets any key vanish at any time. A
//! node comes back without what it kept: no attempt counts it until it is repaired, which begins
//! when everybody that it may have granted before is through, and brings its number up to the
//! largest of the others'.
//!
//! # What must hold
//!
//! Whatever time does, no two attempts return one number ([`Kind::SameNumber`]), and one that began
//! when another had returned returns a larger one ([`Kind::Order`]). When time is honest, numbers
//! grow in the order of returns ([`Kind::ReturnOrder`]), and no two hold ([`Kind::TwoBelieve`]).
//!
//! # Why the states are few enough
//!
//! No clock moves: whatever ends, ends at any time. Nodes are all alike, so states that differ in
//! which is which are one; attempts are named in the order in which they begin. What can change
//! nothing any more is forgotten. A reply that never comes does as well as a time limit that is
//! over, for what can still return. So two attempts have 12,927 states when time is honest, and
//! 1,166,357 when it is not; the design's own model, which took no nodes for each other, had
//! 143,554 and 2,946,356.
//!
//! # What is not modelled
//!
//! Validity (a late outcome returns nothing), several locks, the queue, and how the amnesia of a
//! node is noticed. A repair raises this lock's number alone.
//!
//! [`Kind::SameNumber`]: crate::Kind::SameNumber
//! [`Kind::Order`]: crate::Kind::Order
//! [`Kind::ReturnOrder`]: crate::Kind::ReturnOrder
//! [`Kind::TwoBelieve`]: crate::Kind::TwoBelieve

mod check;
mod config;
mod model;
mod names;
mod print;
mod run;
mod state;
mod step;
mod trace;

pub use config::{NumbersConfig, NumbersFlaw, Timing};

use self::{model::QuorumModel, print::print};
use crate::{Limits, Report, search::search_world};

/// Searches the states of attempts at three nodes, breadth first, so that what is found is found by
/// a shortest way. Liveness is not tried.
#[must_use]
pub fn search_numbers(config: NumbersConfig, limits: Limits) -> Report {
    search_world(&QuorumModel::new(config), limits, print)
}
