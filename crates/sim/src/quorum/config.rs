//! What is searched: how many attempts, what time may do, and what is broken on purpose.

/// How large the world of fencing numbers is, and what may go wrong in it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain settings of a search")]
pub struct NumbersConfig {
    /// Attempts, each with a token of its own. They begin in order.
    pub attempts: u8,
    /// The last numbers of the nodes at the beginning: unequal ones are what failed attempts leave.
    pub last: [u8; 3],
    /// What each attempt proposes, the last one all that come after it; 0 is one more than a node's
    /// own last number.
    pub proposals: [u8; 3],
    /// What time may do.
    pub timing: Timing,
    /// Clients may crash, or stop waiting, before their attempt is settled.
    pub crashes: bool,
    /// The client's time limits may be over. What they lead to that is no failure, a reply that
    /// never comes leads to as well; so without them there are fewer states, and no fewer numbers.
    pub limits: bool,
    /// How often a node may come back without what it kept.
    pub losses: u8,
    /// A node that came back is brought up to the others' numbers, and counts again.
    pub repairs: bool,
    /// What is broken on purpose.
    pub flaw: Option<NumbersFlaw>,
}

impl Default for NumbersConfig {
    fn default() -> Self {
        Self {
            attempts: 2,
            last: [0, 1, 1],
            proposals: [0; 3],
            timing: Timing::Honest,
            crashes: true,
            limits: false,
            losses: 0,
            repairs: false,
            flaw: None,
        }
    }
}

/// What time may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "as promised, or anyhow")]
pub enum Timing {
    /// A key stays while its attempt asks or holds. Exclusion and the order of returns are checked,
    /// too.
    Honest,
    /// Any key may vanish at any time: clocks jump, keys are evicted, holders sleep.
    Dishonest,
}

/// One way to get the numbers wrong: the search must find what comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests face all of them")]
pub enum NumbersFlaw {
    /// The largest number of a majority is taken, though they differ.
    NaiveMaximum,
    /// A confirmation raises the number even if another holds the lock, and counts.
    UnconditionalWriteBack,
    /// A node whose grant reply was lost counts when it is confirmed, whatever its number.
    CountLostGrants,
    /// Where all three grant, the middle number is taken, and not confirmed.
    MiddleNumber,
    /// A node that came back counts again when its delay is over, though it knows no number.
    NoQuarantine,
    /// A node that came back is repaired before its delay is over.
    EarlyRepair,
    /// A node writes what it is asked to confirm, or what a release leaves behind, however far
    /// ahead of its clock that is.
    NoBound,
}
