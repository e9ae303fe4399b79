//! Servers that tests share, and looks at them behind the library's back.

use std::sync::OnceLock;

use tenure_testkit::{Server, ServerKind, Value};

/// The server of a kind that all tests of this binary share: each test has a key of its own there.
///
/// What hurts a server, or counts all it is told, needs a private one.
pub(crate) fn shared(kind: ServerKind) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 3] = [const { OnceLock::new() }; 3];
    SERVERS[kind as usize].get_or_init(|| Server::start(kind))
}

/// The addresses of so many nodes, servers of all kinds in turn: each kind's databases are nodes.
pub(crate) fn mixed(nodes: usize) -> String {
    let address = |index: usize| {
        let kind = ServerKind::ALL[index % ServerKind::ALL.len()];
        format!("{}?db={}", shared(kind).url(), index / ServerKind::ALL.len())
    };
    (0..nodes).map(address).collect::<Vec<_>>().join(",")
}

/// The one that tests use whose matter does not depend on the kind.
pub(crate) fn any() -> &'static Server {
    shared(ServerKind::Redis70)
}

/// What stands at a key.
pub(crate) fn get(server: &Server, key: &str) -> Value {
    server.cmd(&["GET", key])
}

/// Milliseconds that are left of a key; -1 without a TTL, -2 without a key.
pub(crate) fn pttl(server: &Server, key: &str) -> i64 {
    server.cmd(&["PTTL", key]).int()
}

/// Whether there is such a key.
pub(crate) fn exists(server: &Server, key: &str) -> bool {
    server.cmd(&["EXISTS", key]).int() == 1
}
