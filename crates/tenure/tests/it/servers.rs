//! Servers that tests share, and looks at them behind the library's back.

use std::{sync::OnceLock, time::Duration};

use tenure::blocking::Client;
use tenure_testkit::{Proxy, Server, ServerKind, Value};

/// The server of a kind that all tests of this binary share: each test has a key of its own there.
///
/// A test that hurts a server, or counts its requests, needs a private one.
pub(crate) fn shared(kind: ServerKind) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 3] = [const { OnceLock::new() }; 3];
    SERVERS[kind as usize].get_or_init(|| opened(Server::start(kind)))
}

/// The addresses of so many nodes, six at most, that tests share.
pub(crate) fn mixed(nodes: usize) -> String {
    quorum(several(nodes))
}

/// So many, six at most, that tests share: servers of all kinds in turn.
pub(crate) fn several(nodes: usize) -> Vec<&'static Server> {
    static OTHERS: [OnceLock<Server>; 3] = [const { OnceLock::new() }; 3];
    let kinds = ServerKind::ALL;
    let server = |index: usize| match index.checked_sub(kinds.len()) {
        None => shared(kinds[index]),
        Some(index) => OTHERS[index].get_or_init(|| opened(Server::start(kinds[index]))),
    };
    (0..nodes).map(server).collect()
}

/// Declares by hand, as `tenure init` does, that these have forgotten no lock: they are new.
pub(crate) fn open<'a>(servers: impl IntoIterator<Item = &'a Server>) {
    for server in servers {
        let client = Client::connect(&server.url()).unwrap();
        let reports = client.open_new(MAX).unwrap();
        assert!(reports[0].trouble.is_none(), "{reports:?}");
    }
}

/// The server, which is new.
fn opened(server: Server) -> Server {
    open([&server]);
    server
}

/// Each lock's own span is longer, and waited for where a server forgets: it is open for all.
const MAX: Duration = crate::secs(1);

/// The address of a quorum of these, which keep their markers over a restart, if anything.
pub(crate) fn quorum<'a>(servers: impl IntoIterator<Item = &'a Server>) -> String {
    durable(servers.into_iter().map(Server::url))
}

/// The address of a quorum of those behind these.
pub(crate) fn behind<'a>(proxies: impl IntoIterator<Item = &'a Proxy>) -> String {
    durable(proxies.into_iter().map(Proxy::url))
}

fn durable(urls: impl Iterator<Item = String>) -> String {
    urls.map(|url| url + "?durable=yes").collect::<Vec<_>>().join(",")
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

/// Scripts that the server was sent so far.
pub(crate) fn scripts(server: &Server) -> i64 {
    let stats = server.cmd(&["INFO", "commandstats"]);
    let stats = stats.text().unwrap();
    let calls = |name: &str| {
        let line =
            stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
        line.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse().unwrap())
    };
    calls("eval") + calls("evalsha")
}
