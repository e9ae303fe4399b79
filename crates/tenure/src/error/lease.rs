//! What can go wrong with a lease: that it is lost, or that servers do not confirm what was asked.

use std::fmt;

use tenure_core::{LockKey, LossReason};

use super::{ConfigError, NodeErrors, RenewalFailure, STOPPED, described, named};

/// A lost lease: its lock, and why it was lost.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Loss {
    /// The lock's key.
    pub key: LockKey,
    /// Why the lease was lost.
    pub reason: LossReason,
    /// What the servers answered last, if the lease expired because renewals failed.
    pub failure: Option<Box<RenewalFailure>>,
}

impl Loss {
    pub(crate) fn new(key: &LockKey, reason: LossReason, failure: Option<RenewalFailure>) -> Self {
        let failure = failure.filter(|_| reason == LossReason::Expired).map(Box::new);
        Self { key: key.clone(), reason, failure }
    }

    /// What to try.
    fn hint(&self) -> &'static str {
        match self.reason {
            _ if self.failure.as_ref().is_some_and(|failure| failure.is_refusal()) => {
                "the servers must permit this for as long as a lock is held"
            }
            LossReason::Expired => "a longer TTL outlasts longer outages",
            LossReason::Paused { .. } => "a longer TTL outlasts longer pauses",
            LossReason::MaxHold => "raise max_hold, if the work needs longer",
            LossReason::Gone | LossReason::Taken { .. } => {
                "another may have worked at the same time: let the resource check fencing tokens"
            }
            LossReason::EngineStopped => "make a new client",
            _ => "acquire the lock again",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lock {} is not held any more: {}", named(Some(&self.key)), self.reason)?;
        if let Some(failure) = &self.failure {
            write!(f, "; {failure}")?;
        }
        write!(f, "; {}", self.hint())
    }
}

/// The text has all that is known, so there is no source.
impl std::error::Error for Loss {}

/// Why a lease was not extended.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ExtendError {
    /// The TTL is bad. Nothing was sent; the lock is still held.
    #[error("extending {}: {error}", named(Some(key)))]
    #[non_exhaustive]
    Config {
        /// The lock's key.
        key: LockKey,
        /// What is bad.
        error: ConfigError,
    },
    /// The lease is lost. No key of ours remains, or one that ends with its TTL.
    #[error("extending: {0}")]
    NotHeld(Loss),
    /// Too few servers answered. The lock is still held, until its earlier deadline.
    #[error("{}", described("no confirmation of extending", .0))]
    Unconfirmed(NodeErrors),
    /// The client was closed, its engine stopped, or this is a forked child.
    ///
    /// A key of ours may remain, at most for the TTL.
    #[error("extending {}: {STOPPED}", named(Some(key)))]
    #[non_exhaustive]
    EngineStopped {
        /// The lock's key.
        key: LockKey,
    },
}

/// Why it could not be proved that a lease was held without a break.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum RevalidateError {
    /// The lease is lost: another client may have held the lock meanwhile. No key of ours remains,
    /// or one that ends with its TTL.
    #[error("revalidating: {0}")]
    NotHeld(Loss),
    /// Too few servers answered. The lease is as it was before: held until its deadline, or
    /// expired. A later call may still prove it.
    #[error("{}", described("no proof of holding all the time", .0))]
    Unconfirmed(NodeErrors),
    /// The client was closed, its engine stopped, or this is a forked child.
    ///
    /// A key of ours may remain, at most for the TTL.
    #[error("revalidating {}: {STOPPED}", named(Some(key)))]
    #[non_exhaustive]
    EngineStopped {
        /// The lock's key.
        key: LockKey,
    },
}

/// Why a release was not confirmed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The key is bad. Nothing was sent.
    #[error("releasing {}: {error}", named(None))]
    #[non_exhaustive]
    Config {
        /// What is bad.
        error: ConfigError,
    },
    /// The lease was lost before the release, so work under it may have overlapped another
    /// client's.
    ///
    /// No key of ours remains; another client's key was not touched.
    #[error("releasing: {0}")]
    NotHeld(Loss),
    /// An earlier release with the same token succeeded, and the lease was not lost before it.
    /// Another client may hold the lock now.
    ///
    /// Servers remember a release by token, or of a resumed lease, for a minute. After that, and
    /// after the release of a guard, they only know whether another client holds the lock:
    /// [`ReleaseError::NotHeld`].
    #[error(
        "releasing {}: it is already released, by an earlier release of the same token",
        named(Some(key))
    )]
    #[non_exhaustive]
    AlreadyReleased {
        /// The lock's key.
        key: LockKey,
    },
    /// Too few servers answered. A key of ours may remain, at most for the TTL; the release is
    /// repeated in the background until then, unless the server refuses it permanently.
    #[error("{}", described("no confirmation of releasing", .0))]
    Unconfirmed(NodeErrors),
    /// The client was closed, its engine stopped, or this is a forked child.
    ///
    /// A key of ours may remain, at most for the TTL.
    #[error("releasing {}: {STOPPED}", named(Some(key)))]
    #[non_exhaustive]
    EngineStopped {
        /// The lock's key.
        key: LockKey,
    },
}
