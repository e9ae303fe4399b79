//! Several servers that vote, and some of them in trouble.

mod chaos;
mod clocks;
mod contention;
mod detached;
mod errors;
mod expiry;
mod fencing;
mod holding;
mod late;
mod logged;
mod lost_data;
mod notifications;
mod numbers;
mod outage;
mod pauses;
mod renewing;
mod restart;
mod returning;
mod revalidating;
mod same_server;
mod trouble;
mod unreachable;

use std::{convert::identity, thread, time::Duration};

use tenure::{
    AcquireError,
    blocking::{Client, Lock, LockGuard},
};
use tenure_testkit::{Builder, Proxy, Server, ServerKind, eventually};

use crate::{
    LIMIT,
    servers::{self, scripts},
};

/// What the tests here start, by name.
pub(crate) const PROGRAMS: [(&str, fn()); 5] = [
    ("come and go among nodes", chaos::come_and_go),
    ("acquire on request", pauses::acquirer),
    ("hold and prove", revalidating::holder),
    ("hold and prove at once", late::holder),
    ("hold and report", logged::hold_and_tell),
];

/// Servers that a test may hurt.
pub(crate) struct Nodes(pub(crate) Vec<Server>);

impl Nodes {
    /// So many, of all kinds in turn, on ports: so they are found again after a restart.
    pub(crate) fn start(count: usize) -> Self {
        Self::start_with(count, identity)
    }

    /// With this setting of the servers.
    pub(crate) fn start_with(count: usize, with: fn(Builder) -> Builder) -> Self {
        let kinds = ServerKind::ALL.into_iter().cycle().take(count);
        Self::of(kinds.map(|kind| with(Server::builder(kind).tcp()).start()))
    }

    /// These, which are new: nobody has a lock on them.
    pub(crate) fn of(servers: impl Iterator<Item = Server>) -> Self {
        let servers: Vec<_> = servers.collect();
        servers::open(&servers);
        Self(servers)
    }

    pub(crate) fn urls(&self) -> String {
        servers::quorum(&self.0)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.urls()).unwrap()
    }

    /// A network before each of them.
    pub(crate) fn proxies(&self) -> Vec<Proxy> {
        self.0.iter().map(Proxy::to).collect()
    }

    /// Waits until every one of them has the key, and has it keep it for ten minutes more: what is
    /// gone then was deleted.
    pub(crate) fn prolong(&self, key: &str) {
        for node in &self.0 {
            let prolonged = || node.cmd(&["PEXPIRE", key, "600000"]).int() == 1;
            eventually(LIMIT, "it has the key", prolonged);
        }
    }

    /// Has one try to take the lock whose grants all come so much later, and too late; and then
    /// nothing is left of it.
    pub(crate) fn grant_too_late(&self, proxies: &[Proxy], lock: &Lock, key: &str, by: Duration) {
        proxies.iter().for_each(|proxy| proxy.delay_replies(by));
        thread::scope(|scope| {
            let late = scope.spawn(|| lock.try_acquire());
            self.prolong(key);
            let late = late.join().unwrap();
            assert!(matches!(late, Err(AcquireError::NoQuorum(_))), "{late:?}");
        });
        proxies.iter().for_each(Proxy::heal);
        self.becomes_free(key);
    }

    /// Waits until so many of them have the lease's key.
    pub(crate) fn until_had_by(&self, guard: &LockGuard, count: usize) {
        let (key, token) = (guard.key().to_string(), guard.token().as_bytes());
        eventually(LIMIT, "so many have its key", || self.having(&key, token) == count);
    }

    /// On how many of them the key is this.
    pub(crate) fn having(&self, key: &str, token: &[u8]) -> usize {
        self.0.iter().filter(|node| servers::get(node, key).bytes() == Some(token)).count()
    }

    /// Scripts that they were sent so far, all together.
    fn scripts(&self) -> i64 {
        self.0.iter().map(scripts).sum()
    }

    pub(crate) fn becomes_free(&self, key: &str) {
        for node in &self.0 {
            eventually(LIMIT, "no key is left", || !servers::exists(node, key));
        }
    }
}

/// Waits until every server has done what the lock's client asked for so far. The client got its
/// reply when a majority had.
pub(crate) fn all_catch_up(lock: &Lock) {
    lock.nodes().unwrap();
}

/// Waits until each of them votes on the lock, which somebody holds or tries to get meanwhile: a
/// server is closed from its first visit on.
pub(crate) fn until_all_vote(lock: &Lock) {
    let votes = || lock.nodes().unwrap().iter().all(|report| report.trouble.is_none());
    eventually(LIMIT, "all of them vote", votes);
}

/// What errors call a server on a port.
fn name(node: &Server) -> String {
    format!("127.0.0.1:{}", node.port().unwrap())
}

/// Makes a server the replica of another, and waits until the primary has its new identity: it
/// may have begun to grant under the old one.
fn replicate(replica: &Server, primary: &Server) {
    let replid = || {
        let info = primary.cmd(&["INFO", "replication"]);
        let line = info.text().unwrap().lines().find(|line| line.starts_with("master_replid:"));
        line.unwrap().to_owned()
    };
    let (before, port) = (replid(), primary.port().unwrap().to_string());
    assert!(replica.cmd(&["REPLICAOF", "127.0.0.1", &port]).is_ok());
    eventually(LIMIT, "its primary has another identity", || replid() != before);
}
