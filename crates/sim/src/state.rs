//! One state of the world: a server, its clients, and what is under way between them.
//!
//! The clock never moves in here; what ends later is kept as what is left of it. So two states that
//! differ only in when they come are one.

use std::{collections::VecDeque, fmt};

use crate::{
    attempt::{ClientAttempt, Phase},
    config::{Config, Faults},
    message::{Content, Delivery, PendingRequest},
    rank::Rank,
};

/// One attempt, and so its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) client: u8,
    pub(crate) attempt: u8,
}

/// One connection of a client, and so its channel: the first, the second and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) client: u8,
    pub(crate) epoch: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct QueueState {
    pub(crate) server: ModelServer,
    pub(crate) clients: Vec<ModelClient>,
    /// What may still happen.
    pub(crate) faults: Faults,
    /// The largest number that anybody believed in, and who did.
    pub(crate) highest: Option<(Rank, Who)>,
}

/// What a server keeps: the lock's row, taken apart. Tombstones are with their attempts, and the
/// connections it believes in with their clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelServer {
    pub(crate) lock: Option<(Who, Left)>,
    /// The last number given.
    pub(crate) number: Option<Rank>,
    pub(crate) queue: Vec<QueueEntry>,
}

/// Milliseconds until an end.
pub(crate) type Left = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueEntry {
    pub(crate) ticket: Rank,
    pub(crate) who: Who,
    pub(crate) epoch: u8,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ModelClient {
    pub(crate) crashed: bool,
    pub(crate) connected: bool,
    /// Its last connection.
    pub(crate) epoch: u8,
    /// The connections that the server believes in, one bit each.
    pub(crate) seen: u8,
    pub(crate) attempts: Vec<ClientAttempt>,
    /// Under way to the server: first those of connections that have ended, which may still arrive
    /// until the server knows.
    pub(crate) requests: VecDeque<PendingRequest>,
    /// Under way to the client, over its connection.
    pub(crate) inbox: VecDeque<Delivery>,
}

impl fmt::Display for Who {
    /// Its client, and which attempt of it: `c0` is the first of the first, `c0'` its second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}{}", self.client, "'".repeat(self.attempt.into()))
    }
}

impl QueueState {
    pub(crate) fn new(config: &Config) -> Self {
        let attempts = vec![ClientAttempt::default(); usize::from(config.attempts)];
        let client = ModelClient { connected: true, seen: 1, attempts, ..ModelClient::default() };
        Self {
            server: ModelServer::default(),
            clients: vec![client; usize::from(config.clients)],
            faults: config.faults,
            highest: None,
        }
    }

    pub(crate) fn client(&mut self, client: u8) -> &mut ModelClient {
        &mut self.clients[usize::from(client)]
    }

    pub(crate) fn attempt(&self, who: Who) -> &ClientAttempt {
        &self.clients[usize::from(who.client)].attempts[usize::from(who.attempt)]
    }

    pub(crate) fn attempt_mut(&mut self, who: Who) -> &mut ClientAttempt {
        &mut self.client(who.client).attempts[usize::from(who.attempt)]
    }

    /// Every attempt of every client.
    pub(crate) fn everyone(&self) -> impl Iterator<Item = Who> + use<> {
        let attempts = self.clients.first().map_or(0, |client| client.attempts.len());
        let attempts = u8::try_from(attempts).unwrap_or(u8::MAX);
        let clients = u8::try_from(self.clients.len()).unwrap_or(u8::MAX);
        (0..clients)
            .flat_map(move |client| (0..attempts).map(move |attempt| Who { client, attempt }))
    }

    /// Whether a waiter subscribes to the entry's channel.
    pub(crate) fn listens(&self, entry: &QueueEntry) -> bool {
        let client = &self.clients[usize::from(entry.who.client)];
        client.connected
            && client.epoch == entry.epoch
            && self.attempt(entry.who).phase == Phase::Waiting
    }

    /// Whether the server believes in a connection.
    pub(crate) fn is_seen(&self, line: Line) -> bool {
        let client = self.clients.get(usize::from(line.client));
        client.is_some_and(|client| client.seen & (1 << line.epoch) != 0)
    }

    /// Drops messages that will find no waiter, as their receiver does.
    pub(crate) fn forget_pushes(&mut self) {
        for client in &mut self.clients {
            let ModelClient { attempts, inbox, .. } = client;
            inbox.retain(|message| {
                let waits = attempts[usize::from(message.who.attempt)].phase == Phase::Waiting;
                waits || !matches!(message.says, Content::Grant | Content::SuccessorWatch { .. })
            });
        }
    }
}
