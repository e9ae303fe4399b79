//! What is searched: how many clients, which faults, and what is broken on purpose.

/// How large the modelled world is, and what may go wrong in it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain settings of a search")]
pub struct Config {
    /// Clients, each with one connection.
    pub clients: u8,
    /// Acquisitions per client, each with a token of its own.
    pub attempts: u8,
    /// A client's attempts may all wait at once; else each begins when the one before is given up.
    pub together: bool,
    /// The most entries of the queue that a node looks at in one op.
    pub most_served: usize,
    /// Waiters may give up.
    pub cancels: bool,
    /// Attempts may also steal the lock, or release it by force.
    pub by_force: bool,
    /// A holder may also resume, confirm its number, or ask for its key once more, in place of a
    /// renewal.
    pub keeps: bool,
    /// A message to the very client whose op caused it comes before the reply, as from Redis; else
    /// after it, as from Valkey.
    pub pushes_first: bool,
    /// Ticks without a fault after which nobody may wait any more.
    pub patience: u8,
    /// What may happen, how often.
    pub faults: Faults,
    /// What is broken on purpose.
    pub flaw: Option<Flaw>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            clients: 2,
            attempts: 1,
            together: false,
            most_served: 64,
            cancels: true,
            by_force: false,
            keeps: false,
            pushes_first: true,
            patience: 40,
            faults: Faults::default(),
            flaw: None,
        }
    }
}

/// What may happen, and how often at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "plain settings of a search")]
pub struct Faults {
    /// Ticks of the clock; `None` for as many as there are.
    pub ticks: Option<u8>,
    /// A connection ends; its client knows at once, the server later.
    pub disconnects: u8,
    /// A client ends; the server may never know.
    pub crashes: u8,
    /// Somebody deletes the lock's key.
    pub deletes: u8,
    /// A holder renews; no fault, but bounded like one.
    pub renewals: u8,
    /// A client asks a second time before the first answer: only where that is the flaw.
    pub resends: u8,
}

/// One way to get the protocol wrong: the search must find what comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests face all of them")]
pub enum Flaw {
    /// A release never leaves a tombstone.
    NoTombstone,
    /// Stealing and releasing by force take no notice of tombstones.
    ForceIgnoresTombstone,
    /// That a holder's request for a lost key was cut off leaves no tombstone.
    RepairIsForgotten,
    /// A release keeps saying what was known when it was first sent: whether its token's
    /// acquisition was cut off in between, it does not.
    StaleStanding,
    /// The message that the lock is set counts as the lease.
    BelieveMessage,
    /// The TTL counts from the reply, not from before the request.
    BelieveFromReply,
    /// Acquiring what one holds already sets the TTL, even to less.
    LowerTtl,
    /// Only the head of the queue has a timer.
    OnlyHeadPolls,
    /// A waiter does not bring its ticket back.
    NoTicket,
    /// A waiter may ask again while an earlier request is unanswered.
    Resend,
    /// A waiter does not ask again over a new connection.
    NoPollAfterReconnect,
    /// A node that gave up after its most entries is not asked again.
    MoreIsForgotten,
    /// Giving up while the lock is set for oneself does not hand it on.
    CancelOnlyDequeues,
    /// No successor watch is named. Slower, not wrong.
    NoSuccessorWatch,
    /// A waiter whose poll serves another does not become its successor watch. Slower, not wrong.
    CallerIsNoSuccessorWatch,
    /// The release of a token that holds nothing does not serve the queue. Slower, not wrong.
    ReleaseOfNoneServesNone,
}
