//! What is under way between clients and the server.

use crate::{
    attempt::{Force, Keep},
    rank::Rank,
    state::{Left, Line, Who},
};

#[derive(Clone, Debug)]
pub(crate) struct PendingRequest {
    pub(crate) who: Who,
    pub(crate) epoch: u8,
    /// Ticks since it was sent.
    pub(crate) age: u8,
    pub(crate) ask: Ask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Acquire { ticket: Option<Rank>, previous: Option<u8>, suspect: Option<Line> },
    Renew,
    Force(Force),
    Keep(Keep),
    Release { asked: u8, leave_tombstone: bool, waited: bool },
}

#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) who: Who,
    pub(crate) says: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// `age`: ticks since the request was sent.
    Granted {
        number: Rank,
        age: u8,
    },
    Queued {
        left: Left,
        ticket: Rank,
        position: u8,
    },
    More,
    Cancelled,
    Renewed {
        age: u8,
    },
    /// What was asked for beside a renewal was answered; it changes nothing.
    Kept,
    Lost,
    Released {
        more: bool,
    },
    /// A push: the lock is set for it.
    Grant,
    /// A push: it becomes the successor watch.
    SuccessorWatch {
        granted: Line,
    },
}
