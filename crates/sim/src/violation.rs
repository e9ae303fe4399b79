//! What must never be.

use std::fmt;

/// A rule of the protocol that was broken.
#[derive(Clone, Debug)]
pub struct Violation {
    kind: Kind,
    words: String,
}

impl Violation {
    pub(crate) const fn new(kind: Kind, words: String) -> Self {
        Self { kind, words }
    }

    /// Which rule.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.words)
    }
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "all rules that there are")]
pub enum Kind {
    /// A client that believes in its lease has the lock on the server, for at least as long.
    Belief,
    /// At most one believes.
    TwoBelieve,
    /// Numbers grow in the order of belief.
    Numbers,
    /// Nobody is granted before a live one ahead of it in the queue.
    Fifo,
    /// Nobody is granted before a live, queued one that knows an earlier ticket.
    Place,
    /// A token whose release was confirmed never holds the lock.
    LateHolder,
    /// A token whose release was confirmed takes no lock by force.
    LateForce,
    /// A token whose release was confirmed never waits.
    LateWaiter,
    /// The node's model did what it never should: a key without an end, or a reply out of place.
    Row,
    /// Every live waiter is served in the end.
    Stuck,
    /// No two attempts are under one number.
    SameNumber,
    /// An attempt that began after another had returned is under a larger number.
    Order,
    /// A node whose numbers are far ahead of its clock leaves the others' alone.
    Spoiled,
    /// An attempt that returned after another is under a larger number.
    ReturnOrder,
}
