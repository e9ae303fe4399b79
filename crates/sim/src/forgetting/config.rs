//! What is searched: which rule, and what may go wrong.

/// How large the world is, and what may go wrong in it. All times are in ticks.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain settings of a search")]
pub struct ForgettingConfig {
    /// Which grants count as votes.
    pub rule: ForgettingRule,
    /// What may go wrong.
    pub faults: Vec<ForgettingFault>,
    /// How often something goes wrong.
    pub budget: u8,
    /// So long nothing more goes wrong after something did.
    pub gap: u8,
    /// Clients at the same time.
    pub clients: u8,
    /// The TTL of every lease.
    pub ttl: u8,
    /// The span that each client names.
    pub span: u8,
    /// The addresses say that servers keep their keys over a restart.
    pub is_durable: bool,
    /// A lease that ran out may be proved, or resumed by its token.
    pub returns: bool,
}

impl Default for ForgettingConfig {
    fn default() -> Self {
        Self {
            rule: ForgettingRule::Marker,
            faults: Vec::new(),
            budget: 1,
            gap: 0,
            clients: 2,
            ttl: 2,
            span: 2,
            is_durable: false,
            returns: false,
        }
    }
}

/// Which grants of a server count as votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests face all of them")]
pub enum ForgettingRule {
    /// The rule of [`MarkerCheck`](tenure_core::MarkerCheck).
    Marker,
    /// All of them.
    All,
    /// Those of a server whose uptime, by its own clock, is the span or more.
    Uptime,
    /// Those of a server whose run the client has known for the span, or whose uptime was that long
    /// when the client met it first. Clients live forever and remember.
    RunMemory,
    /// The marker names no identity.
    NoIdentity,
    /// The marker names the run alone.
    RunAlone,
    /// A server without a marker is new, and opens at once.
    MissingIsNew,
    /// The first grant writes the marker, and counts.
    FirstGrantWrites,
    /// The time since a server closed is measured by its own clock alone.
    ServerClock,
    /// What a closed server renews counts.
    AnyRenewal,
    /// What a closed server proves of a lease that ran out counts.
    AnyProof,
    /// What a closed server says to a token that takes its lease up again counts.
    AnyResumption,
}

/// One thing that may go wrong with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests face all of them")]
pub enum ForgettingFault {
    /// It restarts without its data.
    RestartEmpty,
    /// It restarts with all its data.
    RestartKept,
    /// `REPLICAOF` another server of these, or an empty one, and `REPLICAOF NO ONE`.
    Replicated,
    /// `FLUSHALL`.
    Flushed,
    /// Its marker is deleted, or evicted.
    MarkerLost,
    /// Its clock is set forward by the span while no lock is on it.
    ClockForward,
}
