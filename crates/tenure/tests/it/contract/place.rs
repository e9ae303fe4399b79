//! Where a case runs, and how it calls the library.

use std::{sync::Mutex, time::Duration};

use tenure::Inspection;
use tenure_testkit::{Proxy, Server, ServerKind, eventually, unique_key};

use super::subject::{Client, Lock, Way};
use crate::{LIMIT, ms, servers};

/// What votes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Store {
    Memory,
    #[cfg(feature = "sqlite")]
    File,
    Server(ServerKind),
    /// So many servers that vote, of all kinds.
    Quorum(usize),
}

/// A store, a way, and a key that no other case has.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) store: Store,
    pub(crate) way: Way,
    pub(crate) key: String,
    /// The ways from clients to servers that vote.
    networks: Mutex<Vec<Proxy>>,
}

impl Place {
    pub(crate) fn new(store: Store, way: Way) -> Self {
        Self { store, way, key: unique_key("contract"), networks: Mutex::default() }
    }

    /// A client of its own: its connection and its thread are no other's.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.way, &self.address())
    }

    pub(crate) fn address(&self) -> String {
        match self.store {
            // The table lives while a client has it open, and no other case knows its name.
            Store::Memory => format!("memory://{}", self.key),
            #[cfg(feature = "sqlite")]
            Store::File => format!("file://{}/{}.db", stores().display(), self.key),
            Store::Server(kind) => servers::shared(kind).url(),
            Store::Quorum(nodes) => self.uneven(nodes),
        }
    }

    /// The servers as one client sees them: a minority of them is far away, and another one than
    /// for the client before it. So each client gets its reply when a part of the work has yet
    /// to be done, which others may notice.
    fn uneven(&self, nodes: usize) -> String {
        let mut networks = self.networks.lock().unwrap();
        let clients = networks.len() / nodes;
        let proxies: Vec<_> = servers::several(nodes).into_iter().map(Proxy::to).collect();
        for far in 0..(nodes - 1) / 2 {
            proxies[(clients + far) % nodes].delay(FAR);
        }
        let address = servers::behind(&proxies);
        networks.extend(proxies);
        address
    }

    /// Waits until every server has done what the lock's client asked for so far. The client got
    /// its reply when a majority had.
    pub(crate) fn all_catch_up(&self, lock: &Lock) {
        if let Store::Quorum(nodes) = self.store {
            assert_eq!(lock.nodes().unwrap().len(), nodes);
        }
    }

    /// The server to look at behind the library's back; none in memory, in a file or of a quorum.
    pub(crate) fn server(&self) -> Option<&'static Server> {
        match self.store {
            Store::Memory => None,
            #[cfg(feature = "sqlite")]
            Store::File => None,
            Store::Server(kind) => Some(servers::shared(kind)),
            // A majority may have the key, and this one not yet.
            Store::Quorum(_) => None,
        }
    }

    pub(crate) fn inspect(&self) -> Inspection {
        self.client().lock(&self.key).inspect().unwrap()
    }

    pub(crate) fn is_held(&self) -> bool {
        self.inspect().held.is_some()
    }

    /// Waits until nobody holds the lock; of servers that vote, until none has a key of it.
    pub(crate) fn becomes_free(&self) {
        let lock = self.client().lock(&self.key);
        let is_nowhere = |nodes| {
            servers::several(nodes).iter().all(|server| !servers::exists(server, &self.key))
        };
        eventually(LIMIT, "the lock is free", || match self.store {
            Store::Quorum(nodes) => is_nowhere(nodes),
            _ => lock.inspect().unwrap().held.is_none(),
        });
    }

    /// What is left of the key, which must be there and must end.
    pub(crate) fn ttl_left(&self) -> Duration {
        self.inspect().held.expect("somebody holds the lock").ttl_left.get().expect("it has a TTL")
    }
}

/// Longer than a near server takes for anything, and short against any TTL here.
const FAR: Duration = ms(15);

/// Where the stores in files are, for as long as the tests run.
#[cfg(feature = "sqlite")]
fn stores() -> &'static std::path::Path {
    static STORES: std::sync::OnceLock<tenure_testkit::TempDir> = std::sync::OnceLock::new();
    STORES.get_or_init(tenure_testkit::TempDir::new).path()
}
