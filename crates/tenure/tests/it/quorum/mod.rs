//! Several servers that vote, and some of them in trouble.

mod chaos;
mod contention;
mod holding;
mod outage;

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, eventually};

use crate::{LIMIT, servers};

/// What the tests here start, by name.
pub(crate) const PROGRAMS: [(&str, fn()); 1] = [("come and go among nodes", chaos::come_and_go)];

/// Servers that a test may hurt.
struct Nodes(Vec<Server>);

impl Nodes {
    /// So many, of all kinds in turn, on ports: so they are found again after a restart.
    fn start(count: usize) -> Self {
        let kinds = ServerKind::ALL.into_iter().cycle();
        Self(kinds.take(count).map(|kind| Server::builder(kind).tcp().start()).collect())
    }

    fn urls(&self) -> String {
        servers::quorum(&self.0)
    }

    fn client(&self) -> Client {
        Client::connect(&self.urls()).unwrap()
    }

    /// On how many of them the key is this.
    fn having(&self, key: &str, token: &[u8]) -> usize {
        self.0.iter().filter(|node| servers::get(node, key).bytes() == Some(token)).count()
    }

    fn becomes_free(&self, key: &str) {
        for node in &self.0 {
            eventually(LIMIT, "no key is left", || !servers::exists(node, key));
        }
    }
}
