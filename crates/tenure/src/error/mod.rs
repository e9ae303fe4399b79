//! What can go wrong, one type per operation.
//!
//! "Held by another", "cannot tell", "lost" and "bad input" never share a variant. Each variant
//! says what is left on the servers. An error that comes from servers is told in one line: what was
//! to be done, with which lock, and what each server said.

mod config;
mod node;
mod nodes;
mod renewal;

pub use config::ConfigError;
pub(crate) use node::is_shortage;
pub use node::{NodeError, NodeErrorKind};
pub use nodes::NodeErrors;
pub use renewal::RenewalFailure;

use std::{error::Error, fmt, iter, time::Duration};

use tenure_core::{Holder, LockKey, LossReason, Shown, TtlLeft};

/// Why a lock was not acquired.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// A setting, the key or an address is bad. Nothing was sent; no key of ours remains.
    #[error(transparent)]
    Config(ConfigError),
    /// Another held the lock for the whole wait. No key of ours remains.
    #[error(
        "acquiring {}: it is held by another after {waited:?}: {holder}{}",
        named(Some(key)),
        end(*ttl_left)
    )]
    #[non_exhaustive]
    TimedOut {
        /// The lock's key.
        key: LockKey,
        /// How long the call waited.
        waited: Duration,
        /// Who held the lock at the last try.
        holder: Holder,
        /// What was left of it then. Without an end it is held until somebody deletes the key.
        ttl_left: TtlLeft,
    },
    /// What stands at the key is no lock, so nobody who waits for it gets it: a value of another
    /// type than string; and for [`Lock::steal`](crate::Lock::steal) whatever no lock library
    /// writes. It was left alone. No key of ours remains.
    #[error("{} cannot be a lock: it holds {found}", named(Some(key)))]
    #[non_exhaustive]
    NotALock {
        /// The key.
        key: LockKey,
        /// What stands there.
        found: Holder,
    },
    /// Too few servers answered to tell whether the lock is free.
    ///
    /// A key of ours may remain, at most for the TTL: an attempt whose answer was lost is undone
    /// in the background as soon as its server can be reached.
    #[error("acquiring {}: {none}", named(.0.key.as_ref()), none = .0)]
    NoQuorum(#[source] NoQuorum),
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
    /// The lock's key, once the error has left the engine.
    pub(crate) key: Option<LockKey>,
    /// How many had granted it when it was settled.
    pub granted: usize,
    /// How many would have had to.
    pub needed: usize,
    /// Why those could not tell that neither granted nor refused it, and those that granted it and
    /// could not confirm it, in the order of the addresses.
    pub failed: Vec<NodeError>,
}

impl NoQuorum {
    pub(crate) fn new(granted: usize, needed: usize, failed: Vec<NodeError>) -> Self {
        Self { key: None, granted, needed, failed }
    }

    /// The lock's key.
    #[must_use]
    pub const fn key(&self) -> Option<&LockKey> {
        self.key.as_ref()
    }
}

impl AcquireError {
    /// Names the lock.
    pub(crate) fn of_lock(mut self, key: &LockKey) -> Self {
        if let Self::NoQuorum(none) = &mut self {
            none.key = Some(key.clone());
        }
        self
    }
}

/// That a holder does not end by itself, where that is so.
const fn end(ttl_left: TtlLeft) -> &'static str {
    match ttl_left {
        TtlLeft::Ends(_) => "",
        TtlLeft::Never => ", without an end: the key has no TTL",
    }
}

/// A lock in an error.
fn named(key: Option<&LockKey>) -> String {
    key.map_or_else(|| "the lock".to_owned(), |key| Shown::quoted(key.as_bytes()).to_string())
}

/// What servers did not do, in one line.
fn told(doing: &str, errors: &NodeErrors) -> String {
    format!("{doing} {}: {}", named(errors.key()), errors.in_one_line())
}

impl fmt::Display for NoQuorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { granted, needed, failed, .. } = self;
        let is_far = failed.iter().any(|error| error.kind() == NodeErrorKind::TooFar);
        match granted < needed {
            _ if is_far => f.write_str("the lock could not be kept")?,
            true if *needed == 1 => f.write_str("whether the lock is free cannot be told")?,
            true => write!(
                f,
                "only {granted} of {needed} needed servers granted the lock, {} failed",
                failed.len()
            )?,
            false => write!(
                f,
                "{granted} servers granted the lock, but did not agree in time, {} failed",
                failed.len()
            )?,
        }
        for (error, between) in failed.iter().zip(iter::once(": ").chain(iter::repeat("; "))) {
            write!(f, "{between}{}", error.with_causes())?;
        }
        Ok(())
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
    #[error("{}", told("no confirmation of extending", .0))]
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
    #[error("{}", told("no proof of holding all the time", .0))]
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
    #[error("{}", told("no confirmation of releasing", .0))]
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
    #[error("{} cannot be a lock: it holds {found}", named(Some(key)))]
    #[non_exhaustive]
    NotALock {
        /// The key.
        key: LockKey,
        /// What stands there.
        found: Holder,
    },
    /// Too few servers could tell. A release by force may have happened, or may yet, until it is
    /// cancelled in the background.
    #[error("{}", told("asking about", .0))]
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
        /// What the servers said last, where its time ran out because renewals failed.
        failure: Option<Box<RenewalFailure>>,
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
            Self::Acquire(error) => write!(f, "the work did not begin: {error}"),
            Self::Lost { reason, .. } => write!(f, "the lock was lost during the work: {reason}"),
            Self::Release { error, .. } => write!(f, "the work is done: {error}"),
        }
    }
}

impl<T: fmt::Debug> Error for RunError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Acquire(error) => Some(error),
            Self::Lost { failure, .. } => failure.as_deref().map(|failure| failure as _),
            Self::Release { error, .. } => Some(error),
        }
    }
}
