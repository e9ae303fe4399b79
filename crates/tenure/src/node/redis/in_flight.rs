//! What a connection has asked and not been answered, in order.

use std::collections::VecDeque;

use tenure_core::{Channel, LockKey, Op, Timestamp};

use super::Request;

/// What the next reply answers.
pub(super) enum Expected {
    /// An op.
    Op {
        request: Request,
        /// The whole script was sent, not its SHA-1.
        in_full: bool,
        /// It proves the user's rights, or is refused.
        proves_rights: bool,
        sent: Timestamp,
    },
    /// The subscription to the channel of the connection. The server confirms it by a message, and
    /// refuses it by a reply.
    Subscribed,
    /// The subscription to a lock's channel, or its end; confirmed and refused likewise.
    Listening(Channel),
    /// The check that messages arrive.
    Proof,
    /// The tracking of keys.
    Tracking,
    /// The permission to track the next key.
    Caching,
    /// What stands at a key that is tracked from then on.
    Watched(LockKey),
}

impl Expected {
    fn is_release(&self) -> bool {
        matches!(self, Self::Op { request, .. } if matches!(request.op, Op::Release { .. }))
    }
}

/// The unanswered requests of a connection.
#[derive(Default)]
pub(super) struct InFlight {
    queue: VecDeque<Expected>,
    answered: u64,
    /// How many were asked up to the last one that is no release.
    others: u64,
    /// As many answers make the last release safe.
    needed: u64,
}

impl InFlight {
    pub(super) fn push(&mut self, expected: Expected) {
        let is_release = expected.is_release();
        self.queue.push_back(expected);
        if is_release {
            self.needed = self.others;
        } else {
            self.others = self.answered + self.queue.len() as u64;
        }
    }

    pub(super) fn pop(&mut self) -> Option<Expected> {
        let expected = self.queue.pop_front()?;
        self.answered += 1;
        Some(expected)
    }

    /// The server confirms the subscription to this lock's channel, or its end, by a message.
    pub(super) fn settle(&mut self, channel: &[u8]) {
        if let Some(Expected::Listening(next)) = self.queue.front()
            && next.as_bytes() == channel
        {
            self.pop();
        }
    }

    /// Whether what stands at a tracked key is asked for already: the answer is then newer than any
    /// message that is here.
    pub(super) fn reads(&self, key: &LockKey) -> bool {
        self.queue.iter().any(|expected| matches!(expected, Expected::Watched(read) if read == key))
    }

    /// The ops among them.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.queue.iter().filter_map(|expected| match expected {
            Expected::Op { request, .. } => Some(request),
            _ => None,
        })
    }

    pub(super) fn next(&self) -> Option<&Expected> {
        self.queue.front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the connection may be closed and its releases, once written, are still carried out.
    ///
    /// A server that cannot send an answer, since the other end is closed, throws away what it has
    /// not read yet: so everything that was asked before a release must have been answered.
    pub(super) fn may_be_closed(&self) -> bool {
        self.answered >= self.needed
    }
}
