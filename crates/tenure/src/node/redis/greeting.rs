//! The first commands of a connection: who we are, whom we talk to, and what must not arrive late.

use std::sync::Arc;

use bytes::BytesMut;
use tenure_core::{Timestamp, script::Answer};

use super::{fault, resp};
use crate::{
    address::ServerAddress,
    clock,
    error::{NodeError, NodeErrorKind},
    node::{LATEST_ARRIVAL, instance::ServerInfo},
};

/// Earlier connections whose commands may still arrive.
#[derive(Debug, Default)]
pub(super) struct OldConnections {
    /// Connections with unanswered commands, by what the server called them.
    known: Vec<Peer>,
    /// Until when commands may arrive of connections that cannot be killed: the server had not sent
    /// their ids, or does not permit it.
    unknown_until: Timestamp,
}

impl OldConnections {
    /// Adds a connection that ended with unanswered commands.
    pub(super) fn add(&mut self, peer: Option<Peer>) {
        match peer {
            Some(peer) => self.known.push(peer),
            None => self.unknown_until = clock::now() + LATEST_ARRIVAL,
        }
    }

    /// Whether there is nothing to cut off.
    pub(super) fn is_clear(&self) -> bool {
        self.known.is_empty() && !self.has_unknown()
    }

    /// The connections that a server of this instance knows. Those of another instance died with
    /// it.
    fn of(&mut self, instance: &str) -> Vec<i64> {
        self.known.retain(|peer| *peer.instance == *instance);
        self.known.iter().map(|peer| peer.client).collect()
    }

    /// Takes the answer to a kill: only now is the connection dead, or known not to be ours.
    fn settle(&mut self, client: i64, is_dead: bool) {
        self.known.retain(|peer| peer.client != client);
        if !is_dead {
            self.add(None);
        }
    }

    fn has_unknown(&self) -> bool {
        clock::now() < self.unknown_until
    }
}

/// What a server calls a connection: its client number, good for one instance of the server.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    instance: Arc<str>,
    client: i64,
}

/// The state of the first commands.
///
/// `HELLO` switches to RESP3 and logs in; `SELECT` picks the database; `INFO server` tells the
/// server's instance. After a broken connection, `CLIENT KILL ID` of it follows: a true barrier,
/// since a command of a killed client cannot run any more.
#[derive(Debug)]
pub(super) struct Greeting {
    name: Arc<str>,
    address: Arc<ServerAddress>,
    /// Replies to come, in order.
    expected: Vec<Step>,
    client: Option<i64>,
    peer: Option<Peer>,
    /// What the server has reported of its instance.
    info: ServerInfo,
    /// Every earlier connection is known to be dead on the server.
    cut_off: bool,
    /// Ops may be written before the replies are here.
    eager: bool,
    /// A replica will do: somebody wants to read there, and its scripts refuse all else.
    accepts_replica: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Hello,
    Select,
    Info,
    /// Of the connection with this number.
    Kill(i64),
}

impl Greeting {
    /// Writes the first commands.
    ///
    /// Where nothing depends on their replies, ops follow at once, so that a first op takes one
    /// round trip. They wait where an op behind a refused command would do harm: in the wrong
    /// database, as the wrong user, or overtaken by an earlier connection's command.
    pub(super) fn begin(
        name: &Arc<str>,
        address: &Arc<ServerAddress>,
        old: &OldConnections,
        accepts_replica: bool,
        out: &mut BytesMut,
    ) -> Self {
        let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(password) = &address.password {
            let user = address.user.as_deref().unwrap_or("default");
            hello.extend([b"AUTH", user.as_bytes(), password.expose().as_bytes()]);
        }
        hello.extend([&b"SETNAME"[..], b"tenure"]);
        resp::encode(out, &hello);
        let mut expected = vec![Step::Hello];
        if address.database != 0 {
            resp::encode(out, &[b"SELECT", address.database.to_string().as_bytes()]);
            expected.push(Step::Select);
        }
        resp::encode(out, &[b"INFO", b"server"]);
        expected.push(Step::Info);
        let eager = address.password.is_none() && address.database == 0 && old.is_clear();
        let cut_off = !old.has_unknown();
        let info = ServerInfo::default();
        let (name, address) = (Arc::clone(name), Arc::clone(address));
        Self {
            name,
            address,
            expected,
            client: None,
            peer: None,
            info,
            cut_off,
            eager,
            accepts_replica,
        }
    }

    /// Whether ops may be written now.
    pub(super) fn lets_ops_through(&self) -> bool {
        self.eager || self.is_over()
    }

    /// Whether all replies are here.
    pub(super) fn is_over(&self) -> bool {
        self.expected.is_empty()
    }

    /// Whether every earlier connection is known to be dead on the server.
    pub(super) fn has_cut_off(&self) -> bool {
        self.cut_off
    }

    /// The server's id of this connection, if it has sent one.
    pub(super) fn peer(&self) -> Option<Peer> {
        self.peer.clone()
    }

    /// What the server has reported of its instance.
    pub(super) fn server_info(&self) -> &ServerInfo {
        &self.info
    }

    /// Takes the reply to the next of the first commands.
    pub(super) fn handle(
        &mut self,
        incoming: resp::Incoming,
        old: &mut OldConnections,
        out: &mut BytesMut,
    ) -> Result<(), NodeError> {
        let step = self.expected.remove(0);
        match (step, incoming) {
            (Step::Hello | Step::Select, resp::Incoming::Error(words)) => {
                return Err(fault::of_reply(&self.name, &self.address, &words));
            }
            (Step::Hello, resp::Incoming::Map(fields)) => self.hello(&fields)?,
            (Step::Hello, _) => return Err(NodeError::new(&self.name, NodeErrorKind::Protocol)),
            (Step::Select, _) => {}
            (Step::Info, reply) => self.info(&reply, old, out),
            (Step::Kill(client), reply) => {
                // Whatever the count: the client is gone now.
                let is_dead = matches!(reply, resp::Incoming::Reply(Answer::Int(_)));
                old.settle(client, is_dead);
                self.cut_off &= is_dead;
            }
        }
        Ok(())
    }

    fn hello(&mut self, fields: &[(String, Answer)]) -> Result<(), NodeError> {
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("id", Answer::Int(id)) => self.client = Some(*id),
                ("role", Answer::Bytes(role)) if role != b"master" && !self.accepts_replica => {
                    return Err(NodeError::new(&self.name, NodeErrorKind::ReadOnly));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Learns the instance, and kills what is left of earlier connections to the same instance.
    ///
    /// A client number means nothing in another instance: killing it there would hit a stranger.
    fn info(&mut self, reply: &resp::Incoming, old: &mut OldConnections, out: &mut BytesMut) {
        self.info = text(reply).map(ServerInfo::read).unwrap_or_default();
        let Some(instance) = self.info.id.clone() else {
            // Not permitted here, so nothing can be cut off.
            self.cut_off = old.is_clear();
            return;
        };
        for client in old.of(&instance) {
            resp::encode(out, &[b"CLIENT", b"KILL", b"ID", client.to_string().as_bytes()]);
            self.expected.push(Step::Kill(client));
        }
        self.peer = self.client.map(|client| Peer { instance, client });
    }
}

fn text(reply: &resp::Incoming) -> Option<&str> {
    let resp::Incoming::Reply(Answer::Bytes(text)) = reply else { return None };
    std::str::from_utf8(text).ok()
}
