//! Where a case runs, and how it calls the library.

use tenure::Inspection;
use tenure_testkit::{Server, ServerKind, unique_key};

use super::subject::{Client, Way};
use crate::{LIMIT, servers};

/// What votes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Store {
    Memory,
    #[cfg(feature = "file")]
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
}

impl Place {
    pub(crate) fn new(store: Store, way: Way) -> Self {
        Self { store, way, key: unique_key("contract") }
    }

    /// A client of its own: its connection and its thread are no other's.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.way, &self.address())
    }

    pub(crate) fn address(&self) -> String {
        match self.store {
            // The table lives while a client has it open, and no other case knows its name.
            Store::Memory => format!("memory://{}", self.key),
            #[cfg(feature = "file")]
            Store::File => format!("file://{}/{}.db", stores().display(), self.key),
            Store::Server(kind) => servers::shared(kind).url(),
            Store::Quorum(nodes) => servers::mixed(nodes),
        }
    }

    /// The server to look at behind the library's back; none in memory, in a file or of a quorum.
    pub(crate) fn server(&self) -> Option<&'static Server> {
        match self.store {
            Store::Memory => None,
            #[cfg(feature = "file")]
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

    /// Waits until nobody holds the lock.
    pub(crate) fn becomes_free(&self) {
        let lock = self.client().lock(&self.key);
        tenure_testkit::eventually(LIMIT, "the lock is free", || {
            lock.inspect().unwrap().held.is_none()
        });
    }

    /// What is left of the key, which must be there and must end.
    pub(crate) fn ttl_left(&self) -> std::time::Duration {
        self.inspect().held.expect("somebody holds the lock").ttl_left.get().expect("it has a TTL")
    }
}

/// Where the stores in files are, for as long as the tests run.
#[cfg(feature = "file")]
fn stores() -> &'static std::path::Path {
    static STORES: std::sync::OnceLock<tenure_testkit::TempDir> = std::sync::OnceLock::new();
    STORES.get_or_init(tenure_testkit::TempDir::new).path()
}
