//! One state of the world: three servers, and clients of theirs.

use tenure_core::MarkerCause;

/// Servers: the fewest of which one may forget.
pub(crate) const SERVERS: usize = 3;

/// What no client holds any more: the token of one that ended.
pub(crate) const ENDED: u8 = 9;

/// A `run_id` or a `replid`; they matter by equality alone.
pub(crate) type Id = u8;

#[derive(Clone, Debug)]
pub(crate) struct ForgettingState {
    pub(crate) servers: [ForgettingServer; SERVERS],
    pub(crate) clients: Vec<ForgettingClient>,
    pub(crate) budget: u8,
    /// Ticks until something may go wrong again.
    pub(crate) gap: u8,
}

/// One server; times are ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ForgettingServer {
    pub(crate) data: Data,
    pub(crate) run: Id,
    pub(crate) replid: Id,
    pub(crate) has_second_replid: bool,
    /// By its own clock; counted as far as any rule looks.
    pub(crate) uptime: u8,
}

/// What it keeps, and what a replica takes over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Data {
    /// The holder of the lock, and for how long.
    pub(crate) lock: Option<(u8, u8)>,
    pub(crate) marker: Option<Mark>,
}

/// A marker, with the time that has passed in place of moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) cause: MarkerCause,
    pub(crate) open: u8,
    pub(crate) longest: u8,
    pub(crate) floor: u8,
    pub(crate) replid: Id,
    pub(crate) run: Id,
    /// Since it was closed, by the server's clock and by the clients'.
    pub(crate) passed: u8,
    pub(crate) client_passed: u8,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ForgettingClient {
    pub(crate) phase: ClientPhase,
    /// Ticks since the requests under way were sent, and what each server answered.
    pub(crate) round: Option<VoteRound>,
    /// What it knows of each server, under the rules by which clients remember.
    pub(crate) known: [KnownRun; SERVERS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientPhase {
    #[default]
    Idle,
    Asking,
    /// It holds the lock for so long, as it believes.
    Holding(u8),
    /// Its lease ran out; its keys may be there.
    RanOut,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VoteRound {
    pub(crate) age: u8,
    pub(crate) answers: [VoteAnswer; SERVERS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum VoteAnswer {
    #[default]
    None,
    /// The key is there, and it counts.
    Yes,
    /// The lock is another's.
    Other,
    /// It counts for nothing.
    Nothing,
}

/// What a client knows of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownRun {
    /// The last run that it met; 0 before the first.
    pub(crate) run: Id,
    /// Ticks until it trusts that run.
    pub(crate) wait: u8,
}

impl ForgettingState {
    /// An identity that nobody has or remembers.
    pub(crate) fn fresh(&self) -> Id {
        let of_server = |server: &ForgettingServer| {
            let marker = server.data.marker.map_or([0; 2], |mark| [mark.run, mark.replid]);
            [server.run, server.replid, marker[0], marker[1]]
        };
        let mut used: Vec<_> = self.servers.iter().flat_map(of_server).collect();
        let known = self.clients.iter().flat_map(|client| client.known);
        used.extend(known.map(|known| known.run));
        (1..).find(|id| !used.contains(id)).expect("fewer identities than numbers")
    }

    /// A client ends: its keys stay until their TTL is over. The next one in its place is new.
    pub(crate) fn end(&mut self, who: u8) {
        for server in &mut self.servers {
            if let Some((owner, _)) = &mut server.data.lock
                && *owner == who
            {
                *owner = ENDED;
            }
        }
        let client = &mut self.clients[usize::from(who)];
        (client.phase, client.round) = (ClientPhase::Idle, None);
    }

    /// A client gives up: its release reaches all servers.
    pub(crate) fn release(&mut self, who: u8) {
        for server in &mut self.servers {
            server.data.lock.take_if(|(owner, _)| *owner == who);
        }
        self.end(who);
    }
}
