//! Addresses that promise more servers than there are.

use tenure::{AcquireError, NodeErrorKind, blocking::Client};
use tenure_testkit::{Server, ServerKind, TempDir, eventually, scale, unique_key};

use super::{Nodes, name, replicate};
use crate::{LIMIT, secs, servers};

/// A server with a port and a socket, and the addresses of both.
fn twice(kind: ServerKind, dir: &TempDir) -> (Server, [String; 2]) {
    let socket = dir.path().join("s");
    let path = socket.to_str().unwrap().to_owned();
    let server = Server::builder(kind).tcp().args(["--unixsocket", &*path]).start();
    servers::open([&server]);
    let urls = [server.url(), format!("redis+unix://{path}")];
    (server, urls.map(|url| format!("{url}?durable=yes")))
}

#[test]
fn two_addresses_of_one_server_are_never_two_votes() {
    for round in 0..scale(6, 300) {
        let (dir, key) = (TempDir::new(), unique_key("twice"));
        let (server, [port, socket]) = twice(ServerKind::ALL[round % 3], &dir);
        for _ in 0..5 {
            let urls = [&*port, &*socket, "redis://127.0.0.1:1"].join(",");
            let lock = Client::connect(&urls).unwrap().lock(&key).node_limit(LIMIT);
            let failed = lock.try_acquire();
            let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
            assert!(none.granted <= 1 && none.needed == 2, "{none:?}");
            let same = none.failed.iter().find(|e| e.kind() == NodeErrorKind::SameServer).unwrap();
            let (node, other) = (same.node(), std::error::Error::source(same).unwrap().to_string());
            let names = [name(&server), dir.path().join("s").display().to_string()];
            let [second, first] = if node == names[0] { [0, 1] } else { [1, 0] };
            assert_eq!(node, names[second]);
            assert!(other.contains(&names[first]), "{other}");
            assert!(!same.is_retryable());
        }
        eventually(LIMIT, "nothing is left", || !servers::exists(&server, &key));
    }
}

/// What the second address says counts for nothing; the servers there are go on deciding.
#[test]
fn the_distinct_servers_decide_without_the_second_address() {
    let (dir, key) = (TempDir::new(), unique_key("beside"));
    let (server, [port, socket]) = twice(ServerKind::Redis70, &dir);
    let other = Nodes::start(1);
    let client = Client::connect(&[port, other.urls(), socket].join(",")).unwrap();
    let lock = client.lock(&key);
    let guard = lock.acquire_within(LIMIT).unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    assert!(lock.inspect().unwrap().held.is_some());
    guard.extend(secs(20)).unwrap();
    guard.release().unwrap();
    let of_kind = |kind| {
        move |report: &&tenure::NodeReport| {
            report.trouble.as_ref().is_some_and(|trouble| trouble.kind() == kind)
        }
    };
    let reports = lock.nodes().unwrap();
    assert_eq!(reports.iter().filter(of_kind(NodeErrorKind::SameServer)).count(), 1);
    assert_eq!(reports.iter().filter(|report| report.trouble.is_none()).count(), 2);
    eventually(LIMIT, "nothing is left", || !servers::exists(&server, &key));
}

/// A release over it, say, would take the key from under the address that counts.
#[test]
fn a_known_second_address_gets_no_requests() {
    let (dir, key) = (TempDir::new(), unique_key("once"));
    let (server, [port, socket]) = twice(ServerKind::Valkey91, &dir);
    let other = Nodes::start(1);
    let client = Client::connect(&[port, other.urls(), socket].join(",")).unwrap();
    let lock = client.lock(&key);
    let troubles = || lock.nodes().unwrap().iter().filter(|one| one.trouble.is_some()).count();
    assert_eq!(troubles(), 1);
    let mut monitor = server.monitor();
    lock.acquire_within(LIMIT).unwrap().release().unwrap();
    assert_eq!(troubles(), 1, "whose clock was asked behind all else");
    let lines = monitor.so_far();
    let asked = lines.iter().filter(|line| line.contains("\"EVAL") && line.contains(&key));
    assert_eq!(asked.count(), 3, "an acquisition, a release and a look: {lines:?}");
}

/// A replica repeats what its primary says, and is no server of its own.
#[test]
fn a_replica_has_no_vote_and_is_named() {
    let (nodes, key) = (Nodes::start(3), unique_key("role"));
    replicate(&nodes.0[2], &nodes.0[0]);
    // Its primary has another identity since the replica came, and waits for the longest TTL.
    let lock = nodes.client().lock(&key).ttl(secs(1)).max_ttl(secs(1)).node_limit(LIMIT);
    lock.acquire_within(LIMIT).unwrap().release().unwrap();
    nodes.0[1].kill();
    let failed = lock.try_acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    let why: Vec<_> = none.failed.iter().map(|error| (error.node(), error.kind())).collect();
    assert!(why.contains(&(&name(&nodes.0[2]), NodeErrorKind::ReadOnly)), "{why:?}");
    let reports = lock.nodes().unwrap();
    let kinds = reports.iter().map(|report| report.trouble.as_ref().map(tenure::NodeError::kind));
    let expected = [None, Some(NodeErrorKind::Unreachable), Some(NodeErrorKind::ReadOnly)];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}
