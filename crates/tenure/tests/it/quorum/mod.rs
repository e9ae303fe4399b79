//! Several servers that vote, and some of them in trouble.

mod clocks;
mod contention;
mod duplicates;
mod expiry;
mod fencing;
mod hints;
mod holding;
mod outage;
mod reach;
mod restart;
mod telling;
mod told;
mod trouble;

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, eventually};

use crate::{LIMIT, queue::foreign::scripts, servers};

/// What the tests here start, by name.
pub(crate) const PROGRAMS: [(&str, fn()); 1] = [("hold and tell", told::hold_and_tell)];

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

    /// As [`Nodes::urls`], but for one that does not promise to keep its keys.
    fn urls_but(&self, undeclared: usize) -> String {
        let url = |(index, node): (usize, &Server)| match index == undeclared {
            true => node.url(),
            false => servers::quorum([node]),
        };
        self.0.iter().enumerate().map(url).collect::<Vec<_>>().join(",")
    }

    fn client(&self) -> Client {
        Client::connect(&self.urls()).unwrap()
    }

    /// On how many of them the key is this.
    fn having(&self, key: &str, token: &[u8]) -> usize {
        self.0.iter().filter(|node| servers::get(node, key).bytes() == Some(token)).count()
    }

    /// Scripts that they were sent so far, all together.
    fn scripts(&self) -> i64 {
        self.0.iter().map(scripts).sum()
    }

    fn becomes_free(&self, key: &str) {
        for node in &self.0 {
            eventually(LIMIT, "no key is left", || !servers::exists(node, key));
        }
    }
}

/// What errors call a server on a port.
fn name(node: &Server) -> String {
    format!("127.0.0.1:{}", node.port().unwrap())
}
