//! Everything a node can be asked, and everything it can say.

use std::time::Duration;

use crate::{FenceFault, FencingToken, Holder, LockKey, Token, Ttl};

/// One atomic step on one node: one script on a server, one transaction in a store.
///
/// An op is sent with a request number, and a server's reply begins with it, so that a reply can
/// never be taken for another's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every node must carry out every op")]
pub enum Op {
    /// Take the lock if it is free, or raise its TTL if this very token holds it.
    Acquire {
        /// The lock.
        key: LockKey,
        /// The attempt's token.
        token: Token,
        /// The lifetime the key gets.
        ttl: Ttl,
    },
    /// Raise the TTL of each lease that its token still holds. Never lowers, never creates.
    Renew(Vec<Renewal>),
    /// Delete the key if the token holds it.
    Release {
        /// The lock.
        key: LockKey,
        /// The token that may hold it.
        token: Token,
    },
    /// Raise the TTL if this very token holds the lock, and tell its number. Never creates.
    Resume {
        /// The lock.
        key: LockKey,
        /// The token that should hold it.
        token: Token,
        /// The lifetime the key has at least, afterwards.
        ttl: Ttl,
    },
    /// Take the lock whoever holds it.
    Steal {
        /// The lock.
        key: LockKey,
        /// The new holder's token.
        token: Token,
        /// The lifetime the key gets.
        ttl: Ttl,
    },
    /// Delete the key whoever holds it.
    ForceRelease {
        /// The lock.
        key: LockKey,
    },
    /// Read who holds the lock; changes nothing.
    Inspect {
        /// The lock.
        key: LockKey,
    },
}

/// One lease to renew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a renewal is these three things")]
pub struct Renewal {
    /// The lock.
    pub key: LockKey,
    /// The token that should still hold it.
    pub token: Token,
    /// The lifetime the key has at least, afterwards.
    pub ttl: Ttl,
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum Reply {
    /// The token holds the lock, under this number.
    Granted(FencingToken),
    /// Another holds the lock.
    Held(Held),
    /// Nobody holds the lock, and it was not asked for unless held.
    Free,
    /// The fence key holds no counter, so nothing was granted and nothing written.
    Faulty(FenceFault),
    /// One answer per renewal, in order.
    Renewed(Vec<RenewalAnswer>),
    /// What became of a release, forced or not.
    Released(Release),
    /// What stands at the key.
    Inspected(Inspection),
}

/// A lock that another holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "complete for one key")]
pub struct Held {
    /// Who.
    pub holder: Holder,
    /// What is left of the key's lifetime.
    pub ttl_left: TtlLeft,
}

/// What is left of a key's lifetime, by the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a key has a TTL or it has none")]
pub enum TtlLeft {
    /// The key ends after this.
    Ends(Duration),
    /// The key has no TTL: another library's holder, or somebody's PERSIST.
    Never,
}

impl TtlLeft {
    /// The time left, or `None` without an end.
    #[must_use]
    pub const fn get(self) -> Option<Duration> {
        match self {
            Self::Ends(left) => Some(left),
            Self::Never => None,
        }
    }
}

/// What became of one renewal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum RenewalAnswer {
    /// The key lives at least the TTL from now on.
    Renewed,
    /// The key is gone.
    Gone,
    /// Another holds the lock.
    Other(Holder),
    /// The node refused to look, in its own words.
    Refused(String),
}

/// What became of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum Release {
    /// The key was there (held by the token, unless forced) and is deleted.
    Released(Holder),
    /// There was no key.
    Free,
    /// Another holds the lock; nothing was changed.
    Other(Holder),
}

/// What stands at a lock's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "complete for one key")]
pub struct Inspection {
    /// Who holds the lock, if anybody does.
    pub held: Option<Held>,
    /// The number of the last grant, while the fence key lives and is sound.
    pub last_number: Option<FencingToken>,
}
