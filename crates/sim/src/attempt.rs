//! One attempt of a client, as the client knows it, with what the checks must know of it.

use crate::{
    rank::Rank,
    state::{Left, Line},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Waiting,
    /// It asks once, whether or not the lock is held.
    Forcing(Force),
    Holding,
    /// It wants its release answered. `waited`: it never held.
    Releasing {
        waited: bool,
    },
    /// Over; or its client is.
    Done,
}

/// What is done to a lock by force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    Steal,
    Release,
}

/// What a holder may ask for, beside a renewal, with its own token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Its number, and a longer TTL.
    Resume,
    /// That its number is the last one.
    Confirm,
    /// The key once more, if it is gone, as of one of several nodes.
    Repair,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientAttempt {
    pub(crate) phase: Phase,
    /// A request under its token may still arrive at any later time.
    pub(crate) ambiguous: bool,
    /// The connections it asked over, one bit each.
    pub(crate) asked: u8,
    /// An acquisition is unanswered.
    pub(crate) asking: bool,
    /// A renewal is unanswered.
    pub(crate) renewing: bool,
    /// What its `Waiting` knows.
    pub(crate) ticket: Option<Rank>,
    pub(crate) suspect: Option<Line>,
    /// Ticks until it looks.
    pub(crate) due: Option<u8>,
    /// A message that came while it was asking.
    pub(crate) notification: Option<WaiterNotification>,
    pub(crate) belief: Option<Belief>,
    /// For the checks: its place when it first joined.
    pub(crate) joined: Option<Rank>,
    /// Its key was deleted by somebody: what it believes is not the protocol's fault.
    pub(crate) robbed: bool,
    /// Its caller knows that it is released.
    pub(crate) release_known: bool,
    /// The server keeps a tombstone of it.
    pub(crate) has_tombstone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Belief {
    pub(crate) left: Left,
    /// None where only a message was believed.
    pub(crate) number: Option<Rank>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaiterNotification {
    Acquire,
    SuccessorWatch { granted: Line },
}

impl Default for ClientAttempt {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            ambiguous: false,
            asked: 0,
            asking: false,
            renewing: false,
            ticket: None,
            suspect: None,
            due: None,
            notification: None,
            belief: None,
            joined: None,
            robbed: false,
            release_known: false,
            has_tombstone: false,
        }
    }
}

impl ClientAttempt {
    /// What is left to know of one that is over: whether anything under its token may ever come.
    pub(crate) fn end(&mut self) {
        let (release_known, has_tombstone) = (self.release_known, self.has_tombstone);
        *self = Self { phase: Phase::Done, release_known, has_tombstone, ..Self::default() };
    }
}
