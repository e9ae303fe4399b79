//! The core of the `tenure` lock: words, arithmetic, state machines, scripts, and the model of
//! one node.
//!
//! Nothing here does I/O, reads a clock, draws a random number or knows an async runtime: the time
//! and the randomness are given. The same code therefore runs in production, in the simulator and
//! in the property tests, and gives the same answer each time.
//!
//! Floors, each knowing only those before it:
//!
//! 1. the words: [`Timestamp`], [`LockKey`], [`Token`], [`FencingToken`], [`Ttl`], [`Quorum`],
//!    [`Backoff`], [`MarkerCheck`], and [`Shown`], which says what of others' text may be shown;
//! 2. [`Op`] and [`Reply`]: everything a node can be asked, and everything it can say;
//! 3. [`Row`] and [`Table`] (what each [`Op`] means), [`script`] (the same for a server, in Lua),
//!    [`Attempt`] and [`LeaseState`];
//! 4. [`Wait`] and [`Waiting`]: attempts until a deadline.

mod attempt;
mod backoff;
mod fence;
#[cfg(test)]
mod fuzz;
mod holder;
mod inspection;
mod jitter_window;
mod key;
mod lease;
mod loss;
mod marker;
mod op;
mod queue;
mod quorum;
mod row;
pub mod script;
mod shown;
mod table;
mod timestamp;
mod token;
mod ttl;
mod wait;

pub use attempt::{Attempt, NodeState, Outcome, Vote};
pub use backoff::Backoff;
pub use fence::{
    FENCE_FLOOR_TTL, FenceFault, FencingToken, MAX_CLOCK_DISTANCE, agreeable, fence_ttl,
    is_far_ahead, least_number, next_number, proposal,
};
pub use holder::{Holder, HolderLabel, LabelError};
pub use inspection::{Inspection, Source, Waiter};
pub use key::{KeyError, LockKey, RESERVED_SUFFIXES};
pub use lease::{LeaseSettings, LeaseState};
pub use loss::{LossReason, Pause};
pub use marker::{
    Closure, Eligibility, MARKER_KEY, Marker, MarkerCause, MarkerCheck, MarkerFound, MarkerMode,
    ServerIdentity,
};
pub use op::{
    Confirmation, Held, Next, Op, Poll, PollAnswer, Release, RenewRequest, RenewalAnswer, Reply,
    TtlLeft,
};
pub use queue::{Channel, Entry, Notification, Place, Ticket};
pub use quorum::{NodeId, Quorum};
pub use row::{NodeTime, Row, Stored, StoredValue};
pub use shown::Shown;
pub use table::Table;
pub use timestamp::Timestamp;
pub use token::{Token, TokenError};
pub use ttl::{Drift, Ttl, TtlError, loss_margin};
pub use wait::{Wait, Waiting};
