//! Why a lock was not acquired.

use std::{error::Error, fmt, iter, time::Duration};

use tenure_core::{Holder, LockKey, TtlLeft};

use super::{ConfigError, NodeError, NodeErrorKind, STOPPED, hint, named};

/// Why a lock was not acquired.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// A setting, the key or an address is bad. Nothing was sent; no key of ours remains.
    #[error("acquiring {}: {error}", named(key.as_ref()))]
    #[non_exhaustive]
    Config {
        /// The lock's key; `None` when the key is what is bad.
        key: Option<LockKey>,
        /// What is bad.
        error: ConfigError,
    },
    /// Another client held the lock for the whole wait. No key of ours remains.
    #[error(
        "acquiring {}: it is held by another after {waited:?}: {holder}; {}",
        named(Some(key)),
        end(*ttl_left)
    )]
    #[non_exhaustive]
    TimedOut {
        /// The lock's key.
        key: LockKey,
        /// How long the call waited.
        waited: Duration,
        /// The holder at the last attempt.
        holder: Holder,
        /// The TTL that the key had left then. Without a TTL, the lock is held until somebody
        /// deletes the key.
        ttl_left: TtlLeft,
    },
    /// The value at the key cannot be a lock, so a waiter would never get it: it is not a string,
    /// or, for [`Lock::steal`](crate::Lock::steal), no lock library writes it. It was left alone.
    /// No key of ours remains.
    #[error("{} cannot be a lock: it holds {found}; use another key", named(Some(key)))]
    #[non_exhaustive]
    NotALock {
        /// The key.
        key: LockKey,
        /// A description of the value.
        found: Holder,
    },
    /// Too few servers answered, so whether the lock is free is unknown.
    ///
    /// A key of ours may remain, at most for the TTL: an attempt whose answer was lost is undone
    /// in the background as soon as its server can be reached.
    #[error("acquiring {}: {none}{}", named(.0.key.as_ref()), hint(&.0.failed), none = .0)]
    NoQuorum(NoQuorum),
    /// The client was closed, its engine stopped, or this is a forked child.
    ///
    /// A key of ours may remain, at most for the TTL.
    #[error("acquiring {}: {STOPPED}", named(Some(key)))]
    #[non_exhaustive]
    EngineStopped {
        /// The lock's key.
        key: LockKey,
    },
}

/// Too few servers granted the lock, and too few refused it to conclude that another client holds
/// it.
#[derive(Debug)]
#[non_exhaustive]
pub struct NoQuorum {
    /// The lock's key, once the error has left the engine.
    pub(crate) key: Option<LockKey>,
    /// How many servers had granted it when the result was certain.
    pub granted: usize,
    /// How many were needed.
    pub needed: usize,
    /// The errors of nodes that neither granted nor refused it, and of those that granted it and
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

/// What to try, by whether the holder ends by itself.
const fn end(ttl_left: TtlLeft) -> &'static str {
    match ttl_left {
        TtlLeft::Ends(_) => "wait longer, or find out what the holder does",
        TtlLeft::Never => "without an end, as the key has no TTL: delete it if its holder is gone",
    }
}

impl fmt::Display for NoQuorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { granted, needed, failed, .. } = self;
        let is_far = failed.iter().any(|error| error.kind() == NodeErrorKind::TooFar);
        match granted < needed {
            _ if is_far => f.write_str("the lock could not be kept")?,
            true if *needed == 1 => f.write_str("could not determine whether the lock is free")?,
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

/// The text has all that the servers said, so there is no source.
impl Error for NoQuorum {}
