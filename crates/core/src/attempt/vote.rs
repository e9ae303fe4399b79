//! What nodes answer to an attempt, and what the answers come to.

use crate::{FencingToken, Held};

/// One node's answer to an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "an answer is yes, no, or none")]
pub enum Vote {
    /// The node set our key, under this number.
    Granted(FencingToken),
    /// The node refused: another holds the lock there.
    Refused {
        /// Its holder.
        held: Held,
        /// The number of the node's last grant, if reported: the next attempt's is larger.
        last_number: Option<FencingToken>,
    },
    /// No reply, or one that does not say. Never taken for a yes or a no: our key may be there.
    Unknown,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every outcome")]
pub enum Outcome {
    /// A majority granted the lock in time, and agreed on this number while it was ours there.
    Acquired(FencingToken),
    /// So many nodes refused that no majority can grant. Others hold the lock; or several attempts
    /// hold a part of it each, and none of them a majority: all release what they have, and try
    /// again after delays that differ.
    ///
    /// Of the refusals, this is the one with whose end a majority may be free.
    Held(Held),
    /// Neither: too many votes are unknown, or the numbers differ.
    Unknown {
        /// How many granted the lock, and are not known to have lost it since.
        granted: usize,
        /// How many must.
        needed: usize,
    },
    /// A majority granted the lock, but too little of its validity was left.
    TooLate,
}
