//! The wait queue, searched state by state: clients with their connections, and one server, with
//! every order in which things can happen to them. And two worlds of their own over several nodes:
//! fencing numbers, [`search_numbers`], and servers that forget, [`search_forgetting`].
//!
//! What is searched is the real thing where there is one. The server is [`Row`], the model that the
//! scripts are tested against; a waiter's timers are those of [`Waiting`]; validity is that of
//! [`Ttl`]. What the engine and its node do with answers, messages and connections is said once
//! more, in `client.rs`.
//!
//! [`Row`]: tenure_core::Row
//! [`Waiting`]: tenure_core::Waiting
//! [`Ttl`]: tenure_core::Ttl
//!
//! # What can happen
//!
//! An attempt begins, holds, renews, releases, gives up. Requests reach the server in the order of
//! their connection, and answers and messages the client, each at any time. A connection ends: what
//! was under way to the client is lost, what was under way to the server may arrive until the
//! server notices, which may be never. The client makes a new one, over which waiters poll,
//! holders renew, and pending releases are repeated. A client crashes; a frozen one
//! is a client to which nothing happens. Somebody deletes the key. A tick of time passes.
//!
//! # What must hold
//!
//! [`Kind`] has the rules; they are checked in every state and at every step. Liveness is tried
//! from many states: things go on fairly, without another fault, three ways (what ended connections
//! had sent arrives first, never, or in between and all in any order), and no client may wait
//! forever. Crashed clients look alive to the server all the while.
//!
//! # Why the states are few enough
//!
//! * Time is what is left until an end, so it does not matter when something happens. Two ticks are
//!   a lease, three a renewed one, one a provisional grant. Past the age at which it gives no
//!   right, a message does not grow older.
//! * Tickets and numbers are ranks, since only their order matters to anybody (`rank.rs`).
//! * Clients are all alike, so two states that differ in which is which are one (`print.rs`).
//! * A message for one that does not wait any more is forgotten, as its client would.
//!
//! A state is kept as a fingerprint of 128 bits, and as the step that led there. [`search()`] goes
//! breadth first, so what it finds has no shorter way; [`walk()`] goes at random, where there is
//! more than can be searched.
//!
//! # What is not modelled
//!
//! Clocks that run at different rates or step, the end of the keys of the queue and the fence and
//! of tombstones (all longer than a model runs), servers that lose what they kept, refusals
//! (memory, permission, a role), waits with an end, several servers, foreign holders and the
//! polling of them, and the barrier of `CLIENT KILL`, which only leaves out some of what happens
//! here. A subscription is there as soon as its connection. A waiter's timer has it acquire; that a
//! client looks before it does so leaves out acquisitions which would find nothing new.
//!
//! # What it is worth
//!
//! [`Flaw`] breaks the protocol in the ways that were found by thinking, and in some that were not;
//! the tests want each found. The server stays the real one: a flaw changes what it is asked, or
//! what comes of its answer.
#![expect(
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "every index is made from the sizes of the model; a panic is a fault of the model"
)]

mod attempt;
mod check;
mod client;
mod config;
mod fair;
mod forgetting;
mod message;
mod model;
mod names;
mod print;
mod quorum;
mod random;
mod rank;
mod report;
mod search;
mod server;
mod state;
mod step;
mod time;
mod trace;
mod violation;
mod walk;
mod world;

pub use config::{Config, Faults, Flaw};
pub use forgetting::{ForgettingConfig, ForgettingFault, ForgettingRule, search_forgetting};
pub use quorum::{NumbersConfig, NumbersFlaw, Timing, search_numbers};
pub use report::{Counterexample, Report};
pub use search::{Limits, search};
pub use violation::{Kind, Violation};
pub use walk::walk;
