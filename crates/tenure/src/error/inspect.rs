//! Why a lock could not be looked at, or released by force.

use tenure_core::{Holder, LockKey};

use super::{ConfigError, NodeErrors, STOPPED, described, named};

/// Why a lock could not be inspected or released by force, or why servers could not be checked.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The key, a TTL or an address is bad. Nothing was sent.
    #[error("asking about {}: {error}", named(key.as_ref()))]
    #[non_exhaustive]
    Config {
        /// The lock's key; `None` when the key is what is bad, or no lock was asked about.
        key: Option<LockKey>,
        /// What is bad.
        error: ConfigError,
    },
    /// No lock library writes the value at the key, so a release by force left it alone.
    #[error("{} cannot be a lock: it holds {found}; use another key", named(Some(key)))]
    #[non_exhaustive]
    NotALock {
        /// The key.
        key: LockKey,
        /// A description of the value.
        found: Holder,
    },
    /// Too few servers answered. A release by force may have happened, or may still happen until it
    /// is cancelled in the background.
    #[error("{}", described("asking about", .0))]
    Unanswered(NodeErrors),
    /// The client was closed, its engine stopped, or this is a forked child.
    #[error("asking about {}: {STOPPED}", named(key.as_ref()))]
    #[non_exhaustive]
    EngineStopped {
        /// The lock's key, where a lock was asked about.
        key: Option<LockKey>,
    },
}
