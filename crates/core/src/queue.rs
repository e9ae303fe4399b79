//! The words of waiting: channels, entries, tickets, and notifications.

use std::{borrow::Borrow, fmt, sync::Arc};

use crate::{LockKey, Shown, Token, Ttl};

/// Where a connection is notified that one of its waiters has the lock. Random, and new with each
/// connection: a subscriber to it is that connection, alive.
///
/// A lock of several nodes, which has no queue, has a channel of its own, for all its waiters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(Arc<[u8]>);

impl Channel {
    /// The channel of a new connection, from 64 random bits.
    #[must_use]
    pub fn new(random: u64) -> Self {
        Self::named(&format!("tenure:{random:016x}"))
    }

    /// The channel of a lock: `tenure:free:` and the key as it is. No two locks share one, and none
    /// is a connection's.
    #[must_use]
    pub fn of_lock(key: &LockKey) -> Self {
        Self([b"tenure:free:", key.as_bytes()].concat().into())
    }

    /// Of nobody: what a notification names when the lock went to no waiter.
    #[must_use]
    pub fn nobody() -> Self {
        Self::named("-")
    }

    /// A connection's channel by its name, which is printable and has no space.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(name.as_bytes().into())
    }

    /// The channel's name on a server.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// So that a channel is found by its name.
impl Borrow<[u8]> for Channel {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// Printable: bytes that are no text are replaced.
impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0)) // tidy: allow
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel({})", Shown::new(&self.0))
    }
}

/// A place in the queue: microseconds of the server's clock at the join, each larger than the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    pub(crate) const LAST: Self = Self(TOMBSTONES - 1);

    /// Takes a ticket as a server wrote it, or `None` when it can be none.
    #[must_use]
    pub const fn new(ticket: u64) -> Option<Self> {
        if ticket < TOMBSTONES { Some(Self(ticket)) } else { None }
    }

    /// The ticket, in microseconds since the epoch.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A waiter's place in the queue, beside its token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "an entry is these two things")]
pub struct Entry {
    /// Where it is notified that it has the lock.
    pub channel: Channel,
    /// The short TTL that the lock gets for it until it confirms.
    pub grant_ttl: Ttl,
}

impl Entry {
    /// The member of the sorted set: `token SP channel SP grant_ttl_ms`.
    #[must_use]
    pub fn member(&self, token: &Token) -> Vec<u8> {
        let Self { channel, grant_ttl } = self;
        format!("{} {channel} {}", token.as_str(), grant_ttl.as_millis()).into_bytes()
    }
}

/// What a waiter brings along when it acquires.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "all that the protocol asks of a waiter")]
pub struct Place {
    /// Its place in the queue.
    pub entry: Entry,
    /// The place it had, if it knows it: a waiter that was passed over comes back with it.
    pub ticket: Option<Ticket>,
    /// How it stood in the queue over an earlier connection.
    pub previous: Option<Entry>,
    /// A channel whose last grant was not confirmed in time: it is passed over.
    pub suspect: Option<Channel>,
}

/// A message to a channel. It carries no right and no number: a confirming reply does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a waiter must know every message")]
pub enum Notification {
    /// The lock is set for this token, for a provisional grant: acquire now.
    Grant {
        /// The waiter's channel.
        to: Channel,
        /// The waiter's token.
        token: Arc<str>,
    },
    /// The lock is set for another, for a provisional grant: look again after it, and name that
    /// one's channel as suspect.
    SuccessorWatch {
        /// The waiter's channel.
        to: Channel,
        /// The waiter's token.
        token: Arc<str>,
        /// The provisional grant, in milliseconds.
        grant_ttl_ms: u64,
        /// The channel that the lock was granted to.
        granted: Channel,
    },
    /// A notification: the lock, one of several nodes, was released here. All its waiters get it.
    Free {
        /// The lock's channel.
        to: Channel,
    },
}

impl Notification {
    /// The channel it goes to.
    #[must_use]
    pub const fn to(&self) -> &Channel {
        match self {
            Self::Grant { to, .. } | Self::SuccessorWatch { to, .. } | Self::Free { to } => to,
        }
    }

    /// The message as it travels.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Grant { token, .. } => format!("g {token}"),
            Self::SuccessorWatch { token, grant_ttl_ms, granted, .. } => {
                format!("w {token} {grant_ttl_ms} {granted}")
            }
            Self::Free { .. } => "f".into(),
        }
    }

    /// Reads a message that came in on a channel; `None` for anything else.
    #[must_use]
    pub fn read(to: &Channel, text: &str) -> Option<Self> {
        let to = to.clone();
        let mut words = text.split(' ');
        let notification = match (words.next()?, words.next()) {
            ("f", None) => Self::Free { to },
            ("g", Some(token)) => Self::Grant { to, token: token.into() },
            ("w", Some(token)) => Self::SuccessorWatch {
                to,
                token: token.into(),
                grant_ttl_ms: words.next()?.parse().ok()?,
                granted: Channel::named(words.next()?),
            },
            _ => return None,
        };
        words.next().is_none().then_some(notification)
    }
}

/// Scores from here on are tombstones (this plus milliseconds), below are tickets; exact in a
/// double, and behind every ticket for the next two centuries.
pub(crate) const TOMBSTONES: u64 = 8_000_000_000_000_000;

/// How long a tombstone stands: longer than a command sits in a dead connection.
pub(crate) const TOMBSTONE_MS: u64 = 60_000;

/// What the queue's key lives longer than the lock's: longer than any waiter's pause.
pub(crate) const QUEUE_EXTRA_MS: u64 = 90_000;

/// Entries looked at in one call: about 0.5 ms of a server's time when all are dead.
pub(crate) const MAX_SERVED: usize = 64;

/// Entries looked at for a successor watch.
pub(crate) const MAX_WATCH_CANDIDATES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let to = Channel::new(7);
        let grant = Notification::Grant { to: to.clone(), token: "ab@h/1".into() };
        let successor_watch = Notification::SuccessorWatch {
            to: to.clone(),
            token: "ab@".into(),
            grant_ttl_ms: 1_000,
            granted: Channel::new(9),
        };
        let free = Notification::Free { to: to.clone() };
        assert_eq!(grant.text(), "g ab@h/1");
        assert_eq!(successor_watch.text(), "w ab@ 1000 tenure:0000000000000009");
        assert_eq!(free.text(), "f");
        for notification in [grant, successor_watch, free] {
            assert_eq!(Notification::read(&to, &notification.text()), Some(notification));
        }
        for text in ["", "g", "f x", "x ab@", "g a b", "w ab@ x c", "w ab@ 1"] {
            assert_eq!(Notification::read(&to, text), None, "{text}");
        }
    }

    #[test]
    fn each_lock_has_a_channel_of_its_own() {
        for key in [&b"k"[..], b"{k}", b"\0 \xff"] {
            let channel = Channel::of_lock(&LockKey::new(key).unwrap());
            assert_eq!(channel.as_bytes(), [b"tenure:free:", key].concat());
        }
    }
}
