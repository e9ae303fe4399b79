//! What handles ask of the engine.

use std::{num::NonZeroU32, time::Duration};

use tenure_core::{
    Held, Holder, HolderLabel, LeaseSettings, LockKey, MarkerMode, Op, Reply, Token, Ttl, Wait,
};
use tokio::sync::oneshot;

use super::{
    exit::Flush,
    lease::{Holding, LeaseId, Leased},
    status::OpenRelease,
};
use crate::{
    error::{AcquireError, ExtendError, NodeErrors, ReleaseError, RevalidateError},
    event::Class,
    report::NodeReport,
};

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// Acquire a lock.
    Acquire { request: Box<AcquireRequest>, reply: AcquireReply },
    /// Raise a lease's TTL once.
    Extend { lease: Leased, ttl: Ttl, reply: oneshot::Sender<Result<(), ExtendError>> },
    /// Prove that a lease's key was there all the time.
    Revalidate { lease: Leased, reply: oneshot::Sender<Result<(), RevalidateError>> },
    /// Give a lease back; without a reply for a dropped guard.
    Release { lease: LeaseId, reply: Option<ReleaseReply>, open: OpenRelease },
    /// Stop renewing a lease and leave its key alone.
    Detach { lease: LeaseId },
    /// Ask one op of the nodes: an inspection, or a release by force or by token.
    Ask { op: Op, reply: oneshot::Sender<Result<Reply, NodeErrors>> },
    /// Ask each node whether it would vote on the lock, if one is named, where nobody takes a lock
    /// with a longer TTL; or open those that have no marker.
    Nodes {
        key: Option<LockKey>,
        max_ttl: Ttl,
        mode: MarkerMode,
        reply: oneshot::Sender<Vec<NodeReport>>,
    },
    /// Wait for the answers to all releases, then stop; replies how many stay unanswered.
    Close { reply: oneshot::Sender<usize> },
    /// Say when every release is written.
    Flush(Flush),
    /// Write what is queued, then stop.
    Stop,
}

/// Where the outcome of a release goes.
pub(crate) type ReleaseReply = oneshot::Sender<Result<(), ReleaseError>>;

/// Where the outcome of an acquisition goes.
pub(crate) type AcquireReply = oneshot::Sender<Result<Acquired, AcquireError>>;

/// What to acquire, and how.
#[derive(Debug)]
pub(crate) struct AcquireRequest {
    pub(crate) key: LockKey,
    pub(crate) how: How,
    pub(crate) settings: LeaseSettings,
    pub(crate) wait: Wait,
    pub(crate) min_validity: Option<Duration>,
    /// How long each of several nodes may take to vote.
    pub(crate) node_limit: Option<Duration>,
    /// Nobody takes the lock with a longer TTL.
    pub(crate) max_ttl: Ttl,
    /// Whether nodes that have lost the key are given it again.
    pub(crate) repair: bool,
    pub(crate) label: HolderLabel,
    pub(crate) class: Class,
    /// Of so many hand-overs, one leaves the key free first for clients of other libraries.
    pub(crate) yield_to_pollers: Option<NonZeroU32>,
}

/// The ways to come by a lease.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// When it is free.
    Try,
    /// From its holder.
    Steal {
        /// Replace a value, too, that no lock library writes.
        any: bool,
    },
    /// By the token that holds it already.
    Resume(Token),
}

impl How {
    /// Whether what a node holds is no lock to this way: a waiter would never get it.
    pub(crate) fn refuses(&self, found: &Holder) -> bool {
        match self {
            Self::Try => matches!(found, Holder::ForeignType(_)),
            // It is refused for this reason only.
            Self::Steal { .. } => true,
            Self::Resume(_) => false,
        }
    }
}

/// How an acquisition ended.
#[derive(Debug)]
pub(crate) enum Acquired {
    Yes(Holding),
    /// Another held the lock at the last try.
    Held {
        held: Held,
        waited: Duration,
    },
    /// Nobody holds the lock, so there is nothing to resume.
    Free,
    /// What stands at the key is no lock, and was left alone.
    NotALock(Holder),
}
