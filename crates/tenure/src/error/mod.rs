//! What can go wrong, one type per operation.
//!
//! "Held by another", "cannot tell", "lost" and "bad input" never share a variant. Each variant
//! says what is left on the servers.

mod config;
mod node;
mod nodes;

pub use config::ConfigError;
pub(crate) use node::is_shortage;
pub use node::{NodeError, NodeErrorKind};
pub use nodes::NodeErrors;

use std::{error::Error, fmt, time::Duration};

use tenure_core::{Holder, LossReason};

/// Why a lock was not acquired.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// A setting, the key or an address is bad. Nothing was sent; no key of ours remains.
    #[error(transparent)]
    Config(ConfigError),
    /// Another held the lock for the whole wait. No key of ours remains.
    #[error("the lock is held by another after {waited:?}: {holder}")]
    TimedOut {
        /// How long the call waited.
        waited: Duration,
        /// Who held the lock at the last try.
        holder: Holder,
    },
    /// What stands at the key is no lock, so nobody who waits for it gets it: a value of another
    /// type than string; and for [`Lock::steal`](crate::Lock::steal) whatever no lock library
    /// writes. It was left alone. No key of ours remains.
    #[error("the key cannot be a lock: it holds {found}")]
    NotALock {
        /// What stands there.
        found: Holder,
    },
    /// Too few servers answered to tell whether the lock is free.
    ///
    /// A key of ours may remain, at most for the TTL: an attempt whose answer was lost is undone
    /// in the background as soon as its server can be reached.
    #[error(transparent)]
    NoQuorum(NoQuorum),
    /// The client was closed, its engine stopped, or this is a forked child.
    ///
    /// A key of ours may remain, at most for the TTL.
    #[error("the client's engine has stopped")]
    EngineStopped,
}

/// Too few servers granted the lock, and too few refused it to say that another holds it.
#[derive(Debug)]
#[non_exhaustive]
pub struct NoQuorum {
    /// How many had granted it when it was settled.
    pub granted: usize,
    /// How many would have had to.
    pub needed: usize,
    /// Why those could not tell that neither granted nor refused it, and those that granted it and
    /// could not confirm it, in the order of the addresses.
    pub failed: Vec<NodeError>,
}

impl fmt::Display for NoQuorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { granted, needed, failed } = self;
        if *needed == 1 {
            return f.write_str("whether the lock is free cannot be told");
        }
        match granted < needed {
            true => write!(f, "only {granted} of {needed} needed servers granted the lock, ")?,
            false => write!(f, "{granted} servers granted the lock, but did not agree in time, ")?,
        }
        write!(f, "{} failed", failed.len())
    }
}

impl Error for NoQuorum {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failed.first().map(|error| error as _)
    }
}

/// Why a lease was not extended.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ExtendError {
    /// The TTL is bad. Nothing was sent; the lock is still held.
    #[error(transparent)]
    Config(ConfigError),
    /// The lease is lost. No key of ours remains, or one that ends with its TTL.
    #[error("the lock is not held any more: {0}")]
    NotHeld(LossReason),
    /// Too few servers could tell. The lock is still held, until the deadline that it had.
    #[error("the servers did not confirm the extension")]
    Unconfirmed(#[source] NodeErrors),
    /// The client was closed, its engine stopped, or this is a forked child.
    ///
    /// A key of ours may remain, at most for the TTL.
    #[error("the client's engine has stopped")]
    EngineStopped,
}

/// Why it was not proved that a lease was held all the time.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum RevalidateError {
    /// The lease is lost: another may have held the lock meanwhile. No key of ours remains, or one
    /// that ends with its TTL.
    #[error("the lock is not held any more: {0}")]
    NotHeld(LossReason),
    /// Too few servers could tell. The lease is as it was before: held until its deadline, or run
    /// out, and another call may prove it yet.
    #[error("the servers did not confirm that the lock was held all the time")]
    Unconfirmed(#[source] NodeErrors),
    /// The client was closed, its engine stopped, or this is a forked child.
    ///
    /// A key of ours may remain, at most for the TTL.
    #[error("the client's engine has stopped")]
    EngineStopped,
}

/// Why a release was not confirmed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The key is bad. Nothing was sent.
    #[error(transparent)]
    Config(ConfigError),
    /// The lease was lost before the release, so work done under it may have overlapped another's.
    ///
    /// No key of ours remains; another's key was not touched.
    #[error("the lock was not held any more: {0}")]
    NotHeld(LossReason),
    /// Too few servers could tell. A key of ours may remain, at most for the TTL; the release is
    /// repeated in the background until then, unless the server says that it never will take it.
    #[error("the servers did not confirm the release")]
    Unconfirmed(#[source] NodeErrors),
    /// The client was closed, its engine stopped, or this is a forked child.
    ///
    /// A key of ours may remain, at most for the TTL.
    #[error("the client's engine has stopped")]
    EngineStopped,
}

/// Why a lock could not be looked at, or released by force.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The key, a TTL or an address is bad. Nothing was sent.
    #[error(transparent)]
    Config(ConfigError),
    /// No lock library writes what stands at the key, so a release by force left it alone.
    #[error("the key cannot be a lock: it holds {found}")]
    NotALock {
        /// What stands there.
        found: Holder,
    },
    /// Too few servers could tell. A release by force may have happened, or may yet, until it is
    /// cancelled in the background.
    #[error("the servers did not answer")]
    Unanswered(#[source] NodeErrors),
    /// The client was closed, its engine stopped, or this is a forked child.
    #[error("the client's engine has stopped")]
    EngineStopped,
}

/// Releases were not answered before the client was closed.
///
/// Their keys may remain, at most for the TTL.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{unanswered} releases were not answered before the client was closed")]
pub struct CloseError {
    /// How many.
    pub unanswered: usize,
}

/// How a piece of work that was run under a lock failed.
///
/// The work's own output is never lost: it is inside where there is one.
#[non_exhaustive]
#[derive(Debug)]
pub enum RunError<T> {
    /// The lock was not acquired; the work did not begin.
    Acquire(AcquireError),
    /// The lease was lost while the work went on. Its future was dropped at its next await.
    Lost {
        /// Why.
        reason: LossReason,
        /// The work's output, if it ended all the same (blocking work cannot be dropped).
        output: Option<T>,
    },
    /// The work ended, and then the release was not confirmed.
    Release {
        /// Why.
        error: ReleaseError,
        /// The work's output.
        output: T,
    },
}

impl<T> fmt::Display for RunError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(_) => f.write_str("the lock was not acquired"),
            Self::Lost { reason, .. } => write!(f, "the lock was lost during the work: {reason}"),
            Self::Release { .. } => f.write_str("the work is done, its lock not surely released"),
        }
    }
}

impl<T: fmt::Debug> Error for RunError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Acquire(error) => Some(error),
            Self::Lost { .. } => None,
            Self::Release { error, .. } => Some(error),
        }
    }
}
