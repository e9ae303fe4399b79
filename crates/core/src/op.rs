//! Everything a node can be asked, and everything it can say.

use std::time::Duration;

use crate::{
    Eligibility, Entry, FenceFault, FencingToken, Holder, Inspection, LockKey, MarkerCheck, Place,
    Ticket, Token, Ttl,
};

/// One atomic step on one node: one script on a server, one transaction in a store.
///
/// An op is sent with a request number, and a server's reply begins with it, so that a reply can
/// never be taken for another's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every node must carry out every op")]
pub enum Op {
    /// Take the lock if it is free and nobody waits for it, or raise its TTL if this very token
    /// holds it: so a waiter confirms, too. Else join the queue, if the caller waits.
    Acquire {
        /// The lock.
        key: LockKey,
        /// The attempt's token.
        token: Token,
        /// The lifetime the key gets.
        ttl: Ttl,
        /// Where several nodes vote: the number that all of them are to give. The node answers
        /// with [`Reply::Voted`] then.
        proposal: Option<FencingToken>,
        /// How the caller waits, if it does.
        place: Option<Place>,
    },
    /// Raise the node's last number to this one, if this very token holds the lock: so nodes that
    /// numbered one attempt differently come to agree. Creates no lock, and leaves its TTL alone.
    Confirm {
        /// The lock.
        key: LockKey,
        /// The attempt's token.
        token: Token,
        /// The TTL of the lease: the number outlives it.
        ttl: Ttl,
        /// The number.
        number: FencingToken,
    },
    /// Raise the TTL of each lease that its token still holds. Never lowers, never creates.
    Renew(Vec<RenewRequest>),
    /// Hand the lock to the next waiter if the token holds it, or delete the key if nobody waits;
    /// and take the token out of the queue. A free lock is handed over as well.
    Release {
        /// The lock.
        key: LockKey,
        /// The token that may hold it, or wait for it.
        token: Token,
        /// The places that the token may have in the queue.
        entries: Vec<Entry>,
        /// A command of a dead connection may still arrive under this token: it must do nothing.
        leave_tombstone: bool,
        /// Leave the lock free for so long first, in milliseconds, for polling libraries; the
        /// next waiter gets a message to poll after that. Zero hands it over at once.
        yield_ms: u64,
        /// The number of the lease, where several nodes vote and the token had the lock: raise the
        /// node's last number to this one first, if the token holds the lock, so that all agree on
        /// the next; and notify its waiters, on the lock's channel, when it is released.
        number: Option<FencingToken>,
    },
    /// Raise the TTL if this very token holds the lock, and return its number. Never creates.
    Resume {
        /// The lock.
        key: LockKey,
        /// The token that should hold it.
        token: Token,
        /// The lifetime the key has at least, afterwards.
        ttl: Ttl,
    },
    /// Take the lock from any holder, unless a release of this token left a tombstone.
    Steal {
        /// The lock.
        key: LockKey,
        /// The new holder's token.
        token: Token,
        /// The lifetime the key gets.
        ttl: Ttl,
        /// Replace a value, too, that no lock library writes ([`Holder::may_be_lock`]).
        any: bool,
    },
    /// Take the lock from any holder, and hand it to the next waiter; or notify all waiters
    /// of several nodes, on the lock's channel. Not if a release of this token left a tombstone.
    ForceRelease {
        /// The lock.
        key: LockKey,
        /// A token of this very call, so that a command which arrives late can be refused.
        token: Token,
        /// Delete a value, too, that no lock library writes ([`Holder::may_be_lock`]).
        any: bool,
    },
    /// Reads the state of the lock; changes nothing.
    Inspect {
        /// The lock.
        key: LockKey,
        /// Answer as well where the node cannot prove that it is a primary: on a replica, or for a
        /// user who may not write. [`Inspection::source`] says which.
        unproved: bool,
    },
    /// See whether each of these waiters has anything to do but to wait on, and keep its queue
    /// alive. Grants nothing, and lets nobody in.
    Poll(Vec<Poll>),
    /// Read the node's wall clock.
    Clock,
    /// The same op, and whether what the node answers counts as a vote, in one atomic step. Made by
    /// [`Op::checked`].
    Checked {
        /// What the client brings to the marker.
        check: MarkerCheck,
        /// The op: one that makes or keeps a grant, or that reads the clock.
        op: Box<Self>,
    },
}

impl Op {
    /// The op, checked against the node's marker if it makes or keeps a grant or reads the clock.
    /// Every other op stays as it is: a release, say, is never refused.
    #[must_use]
    pub fn checked(self, check: MarkerCheck) -> Self {
        match self {
            Self::Acquire { .. }
            | Self::Confirm { .. }
            | Self::Renew(_)
            | Self::Resume { .. }
            | Self::Steal { .. }
            | Self::Clock => Self::Checked { check, op: Box::new(self) },
            Self::Release { .. }
            | Self::ForceRelease { .. }
            | Self::Inspect { .. }
            | Self::Poll(_)
            | Self::Checked { .. } => self,
        }
    }

    /// The op itself, without a check.
    #[must_use]
    pub fn unchecked(&self) -> &Self {
        match self {
            Self::Checked { op, .. } => op,
            op => op,
        }
    }

    /// The check that goes with it.
    #[must_use]
    pub const fn check(&self) -> Option<&MarkerCheck> {
        match self {
            Self::Checked { check, .. } => Some(check),
            _ => None,
        }
    }
}

/// One lease to renew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a renewal is these three things")]
pub struct RenewRequest {
    /// The lock.
    pub key: LockKey,
    /// The token that should still hold it.
    pub token: Token,
    /// The lifetime the key has at least, afterwards.
    pub ttl: Ttl,
}

/// One waiter to poll for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a poll is these three things")]
pub struct Poll {
    /// The lock.
    pub key: LockKey,
    /// The token that waits for it.
    pub token: Token,
    /// Its place in the queue.
    pub entry: Entry,
}

/// What a node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum Reply {
    /// The token holds the lock, under this number.
    Granted(FencingToken),
    /// Another holds the lock.
    Held(Held),
    /// Another holds the lock, and the caller is in the queue.
    Queued {
        /// Its holder.
        held: Held,
        /// The caller's place, which it keeps.
        ticket: Ticket,
        /// How many are before it.
        position: u64,
    },
    /// The token was cancelled before: the command came too late.
    Cancelled,
    /// Many dead waiters were dropped, and there are more: ask again at once.
    More,
    /// Nobody holds the lock, and it was not asked for unless held.
    Free,
    /// A key that tenure derives holds something else, so nothing was granted and nothing written.
    Faulty(FenceFault),
    /// The answer to an acquisition with a proposal, with what the quorum reckons with.
    Voted {
        /// The answer.
        reply: Box<Self>,
        /// The number of the node's last grant, this one included: the next proposal is larger.
        last_number: Option<FencingToken>,
        /// The node's wall clock, in microseconds since the epoch.
        wall_us: u64,
    },
    /// What became of a confirmation.
    Confirmed {
        /// Whether the token holds the lock.
        answer: Confirmation,
        /// The node's wall clock, in microseconds since the epoch.
        wall_us: u64,
    },
    /// The node's wall clock, in microseconds since the epoch.
    Clock {
        /// The time.
        wall_us: u64,
    },
    /// One answer per renewal, in order.
    Renewed(Vec<RenewalAnswer>),
    /// What became of a release, forced or not.
    Released {
        /// What stood at the lock's key.
        release: Release,
        /// Whom the lock went to.
        next: Next,
    },
    /// What stands at the key.
    Inspected(Inspection),
    /// One answer per poll, in order.
    Polled(Vec<PollAnswer>),
    /// The answer to a checked op.
    Checked {
        /// Whether what it says of the caller's own key counts as a vote. What it says of another's
        /// is true either way.
        eligibility: Eligibility,
        /// The answer.
        reply: Box<Self>,
    },
}

impl Reply {
    /// The answer itself, without whether it counts.
    #[must_use]
    pub fn unchecked(&self) -> &Self {
        match self {
            Self::Checked { reply, .. } => reply,
            reply => reply,
        }
    }
}

/// A lock that another holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "complete for one key")]
pub struct Held {
    /// Its holder.
    pub holder: Holder,
    /// What is left of the key's lifetime.
    pub ttl_left: TtlLeft,
}

/// What is left of a key's lifetime, by the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The node refused to poll, in its own words.
    Refused(String),
}

/// What one waiter is to do. It carries no right, whatever it says: a confirming reply does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum PollAnswer {
    /// Acquire now: the lock is free or set for this very token, or it is in no queue, or
    /// something is wrong there that an acquisition will report.
    Go,
    /// Wait on.
    Waits {
        /// The holder of the lock.
        held: Held,
        /// How many are before it.
        position: u64,
    },
}

/// What became of a confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum Confirmation {
    /// The token holds the lock, and this is the node's last number now: at least the one asked
    /// for.
    Ours(FencingToken),
    /// The key is gone.
    Gone,
    /// Another holds the lock.
    Other(Held),
    /// The token holds the lock, and the number was not raised.
    Faulty(FenceFault),
}

/// What became of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum Release {
    /// The key was there, held by the token unless forced, and is given up.
    Released(Holder),
    /// There was no key.
    Free,
    /// Another holds the lock, and keeps it.
    Other(Holder),
    /// The token does not hold the lock, since an earlier release gave it up: one that left a
    /// tombstone, at most a minute ago. Another may hold the lock now.
    AlreadyReleased,
}

/// Whom a node served when a lock became free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum Next {
    /// Nobody waits.
    Nobody,
    /// The lock is set for the next waiter, for a provisional grant.
    Waiter,
    /// Nobody yet: the lock is free for a moment, and the next waiter will poll after that.
    Yielded,
    /// Many dead waiters were dropped, and there are more: ask again at once.
    More,
}
