//! One state of the world: three nodes, and attempts at them.

use std::rc::Rc;

use tenure_core::{Attempt, Confirmation, FencingToken, Held, Holder, TtlLeft, Vote};

/// A last number; 0 is none. They are small in here.
pub(crate) type Number = u8;

/// Nodes: the fewest of which one may fail.
pub(crate) const NODES: usize = 3;

#[derive(Clone, Debug)]
pub(crate) struct QuorumState {
    pub(crate) nodes: [NodeRow; NODES],
    pub(crate) attempts: Vec<ModelAttempt>,
    /// How often a node may still come back without what it kept.
    pub(crate) losses: u8,
}

/// What a node keeps: the lock's row, taken apart; and what clients know of the node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeRow {
    pub(crate) owner: Option<u8>,
    pub(crate) last: Number,
    /// It came back without what it kept, and was not repaired since.
    pub(crate) quarantine: Option<Quarantine>,
}

/// A node that came back without what it kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    /// The attempts, one bit each, that might have been granted by it before and are not over: the
    /// delay of a real one is the longest time that this can take.
    pub(crate) delay: u8,
    /// The nodes that were asked for their last number, one bit each; and the largest.
    pub(crate) read: u8,
    pub(crate) largest: Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptPhase {
    Idle,
    Asking,
    Holding,
    /// Failed, released, or its client crashed: its keys may go, or be released, at any time.
    Over,
}

/// One attempt.
#[derive(Clone, Debug)]
pub(crate) struct ModelAttempt {
    pub(crate) phase: AttemptPhase,
    /// While it asks.
    pub(crate) machine: Option<Rc<Attempt>>,
    pub(crate) lines: [NodeTraffic; NODES],
    /// What it returned.
    pub(crate) number: Option<Number>,
    /// Attempts that had returned before it began, one bit each.
    pub(crate) earlier: u8,
    /// The number that its releases leave behind.
    pub(crate) leaves: Number,
}

/// What is under way between an attempt and a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTraffic {
    pub(crate) ask: LockRequest,
    /// One for each round.
    pub(crate) confirms: [Confirm; 2],
    /// It was asked when it was quarantined: it never counts for this attempt.
    pub(crate) tainted: bool,
}

/// The request for the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LockRequest {
    #[default]
    None,
    /// Under way.
    Sent,
    /// Nobody waits for it any more, and it may still be carried out.
    Late,
    /// Carried out; the reply is under way.
    Replied(NodeReply),
    /// Over; for the flaws, with the number of a grant whose reply arrived.
    Done(Number),
}

/// A confirmation of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Confirm {
    /// Not asked for, or over.
    #[default]
    None,
    Sent(Number),
    Late(Number),
    Replied(NodeReply),
}

/// A reply, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeReply {
    /// Granted, or confirmed, with this number.
    Ours(Number),
    Gone,
    /// Another holds the lock.
    Other,
    Nothing,
}

impl NodeReply {
    pub(crate) fn vote(self) -> Vote {
        match self {
            Self::Ours(last) => Vote::Granted(token(last)),
            Self::Other => Vote::Refused { held: other(), last_number: None },
            Self::Gone | Self::Nothing => Vote::Unknown,
        }
    }

    pub(crate) fn confirmation(self) -> Option<Confirmation> {
        match self {
            Self::Ours(last) => Some(Confirmation::Ours(token(last))),
            Self::Gone => Some(Confirmation::Gone),
            Self::Other => Some(Confirmation::Other(other())),
            Self::Nothing => None,
        }
    }
}

/// Who refuses is all one to an attempt.
fn other() -> Held {
    Held { holder: Holder::from_value(b"x"), ttl_left: TtlLeft::Never }
}

/// Numbers from here on are far ahead of the nodes' clocks, and of all below.
pub(crate) const FAR: Number = 128;

pub(crate) fn token(number: Number) -> FencingToken {
    let far = if number < FAR { 0 } else { FAR_US };
    FencingToken::new(u64::from(number) + far).expect("a number")
}

pub(crate) fn number(token: FencingToken) -> Number {
    let number = token.get();
    let near = if number < FAR_US { number } else { number - FAR_US };
    Number::try_from(near).expect("small numbers")
}

/// Ten hours.
const FAR_US: u64 = 36_000_000_000;

impl QuorumState {
    pub(crate) fn new(attempts: u8, last: [Number; NODES], losses: u8) -> Self {
        let idle = ModelAttempt {
            phase: AttemptPhase::Idle,
            machine: None,
            lines: Default::default(),
            number: None,
            earlier: 0,
            leaves: 0,
        };
        Self {
            nodes: last.map(|last| NodeRow { last, ..NodeRow::default() }),
            attempts: vec![idle; attempts.into()],
            losses,
        }
    }
}
