//! Servers that forget in ways that neither an uptime nor a connection shows, and clients that have
//! never met them before.

use std::time::Instant;

use tenure::{
    AcquireError, NodeErrorKind,
    blocking::{Client, LockGuard},
};
use tenure_testkit::{Builder, Server, ServerKind, eventually, unique_key};

use super::{Nodes, name};
use crate::{LIMIT, ms, secs};

/// Longer than every test here takes.
const HELD: std::time::Duration = secs(60);

/// One holds the lock on the first two of three, and cannot reach the third.
fn holder(nodes: &Nodes, key: &str) -> LockGuard {
    let urls = nodes.urls();
    let of_two = urls.split(',').take(2).chain(["redis://127.0.0.1:1"]);
    let client = Client::connect(&of_two.collect::<Vec<_>>().join(",")).unwrap();
    let lock = client.lock(key).ttl(HELD);
    let guard = lock.acquire_within(LIMIT).unwrap();
    nodes.until_had_by(&guard, 2);
    guard
}

/// The second of three servers forgets the lock, and keeps, or is given, whatever would make it
/// trusted: clients that come then do not get the lock while it is held, however often they ask.
fn nobody_else_gets_in(with: fn(Builder) -> Builder, forget: impl Fn(&Nodes)) {
    let (nodes, key) = (Nodes::start_with(3, with), unique_key("forgets"));
    let guard = holder(&nodes, &key);
    forget(&nodes);
    for visit in 0..3 {
        // Without `?durable=yes`, and with it: what is gone is gone.
        let undeclared: Vec<_> = nodes.0.iter().map(Server::url).collect();
        for urls in [undeclared.join(","), nodes.urls()] {
            let lock = Client::connect(&urls).unwrap().lock(&key).ttl(HELD).node_limit(LIMIT);
            let failed = lock.try_acquire();
            let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{visit}: {failed:?}") };
            let why: Vec<_> = none.failed.iter().map(|of| (of.node(), of.kind())).collect();
            assert_eq!(why, [(&*name(&nodes.0[1]), NodeErrorKind::Restarted)], "visit {visit}");
            let left = none.failed[0].votes_in().unwrap();
            assert!(left > secs(30) && left <= secs(61), "visit {visit}: {left:?}");
        }
    }
    assert_eq!(
        guard.ensure_held().map_err(|loss| loss.reason),
        Ok(()),
        "the test took longer than a lease"
    );
    assert!(guard.release().is_err(), "a majority has forgotten it");
}

fn field(server: &Server, name: &str) -> String {
    let info = server.cmd(&["INFO"]);
    let line = info.text().unwrap().lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().to_owned()
}

#[test]
fn a_new_client_does_not_trust_an_uptime_raised_by_a_clock_step() {
    nobody_else_gets_in(Builder::shim, |nodes| {
        nodes.0[1].kill();
        nodes.0[1].restart_empty();
        nodes.0[1].clock().step_ms(3_600_000);
        let uptime = || field(&nodes.0[1], "uptime_in_seconds:").parse::<i64>().unwrap() > 3_600;
        eventually(LIMIT, "its uptime is an hour", uptime);
    });
}

fn replicate(nodes: &Nodes, host: &str, port: &str) {
    let run = field(&nodes.0[1], "run_id:");
    assert!(nodes.0[1].cmd(&["REPLICAOF", host, port]).is_ok());
    let is_synced = || field(&nodes.0[1], "master_link_status:") == "up";
    eventually(LIMIT, "it is a replica", is_synced);
    assert!(nodes.0[1].cmd(&["REPLICAOF", "NO", "ONE"]).is_ok());
    assert_eq!(field(&nodes.0[1], "run_id:"), run, "the same run");
}

#[test]
fn a_former_replica_of_an_empty_server_has_no_vote() {
    nobody_else_gets_in(
        |of| of,
        |nodes| {
            let empty = Server::builder(nodes.0[1].kind()).tcp().start();
            replicate(nodes, "127.0.0.1", &empty.port().unwrap().to_string());
        },
    );
}

/// The primary has a marker of its own, which comes along with its data.
#[test]
fn a_former_replica_of_another_voter_has_no_vote_by_its_marker() {
    nobody_else_gets_in(
        |of| of,
        |nodes| {
            // Both of one kind: not every server reads what the others send.
            let other =
                Nodes::of(std::iter::once(Server::builder(nodes.0[1].kind()).tcp().start()));
            replicate(nodes, "127.0.0.1", &other.0[0].port().unwrap().to_string());
            assert!(nodes.0[1].cmd(&["EXISTS", "tenure:marker"]).int() == 1, "it came along");
        },
    );
}

#[test]
fn a_flushed_server_has_no_vote() {
    nobody_else_gets_in(
        |of| of,
        |nodes| {
            assert!(nodes.0[1].cmd(&["FLUSHALL"]).is_ok());
        },
    );
}

/// What evicts one key without an end may have evicted others.
#[test]
fn a_server_whose_marker_and_key_were_evicted_has_no_vote() {
    nobody_else_gets_in(
        |of| of,
        |nodes| {
            for key in nodes.0[1].cmd(&["KEYS", "*"]).array() {
                nodes.0[1].cmd(&[b"DEL", key.bytes().unwrap()]);
            }
        },
    );
}

#[test]
fn a_server_whose_databases_were_swapped_has_no_vote() {
    nobody_else_gets_in(
        |of| of,
        |nodes| {
            // The other database was used for locks, too.
            let other = Client::connect(&format!("{}/1", nodes.0[1].url())).unwrap();
            assert!(other.open_new(HELD).unwrap()[0].is_opened);
            assert!(nodes.0[1].cmd(&["SWAPDB", "0", "1"]).is_ok());
        },
    );
}

/// Its marker is in the snapshot, and the lock is not.
#[test]
fn a_server_restored_from_an_older_snapshot_has_no_vote() {
    let (nodes, key) = (Nodes::start(3), unique_key("restored"));
    assert!(nodes.0[1].cmd(&["SAVE"]).is_ok());
    let guard = holder(&nodes, &key);
    nodes.0[1].kill();
    nodes.0[1].start_again();
    assert_eq!(nodes.0[1].cmd(&["EXISTS", "tenure:marker", &key]).int(), 1, "the marker alone");
    let undeclared: Vec<_> = nodes.0.iter().map(Server::url).collect();
    let lock = Client::connect(&undeclared.join(",")).unwrap().lock(&key).ttl(HELD);
    let failed = lock.node_limit(LIMIT).try_acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    assert_eq!(none.failed[0].node(), name(&nodes.0[1]));
    assert!(guard.release().is_err(), "a majority has forgotten it");
}

/// A fleet of clients that each live for a moment, and know nothing of one another.
#[test]
fn three_new_servers_vote_for_short_lived_clients_after_the_max_ttl() {
    let longest = secs(2);
    let new = ServerKind::ALL.map(|kind| Server::builder(kind).start());
    let urls: Vec<_> = new.iter().map(Server::url).collect();
    let (key, began) = (unique_key("fleet"), Instant::now());
    let mut visits = 0;
    eventually(LIMIT, "one gets the lock", || {
        visits += 1;
        let client = Client::connect(&urls.join(",")).unwrap();
        let lock = client.lock(&key).ttl(longest).max_ttl(longest).node_limit(LIMIT);
        match lock.try_acquire() {
            Ok(guard) => guard.map(|guard| guard.release().unwrap()).is_some(),
            Err(AcquireError::NoQuorum(none)) => {
                // The third may not have answered when two have decided.
                let waits = none.failed.iter().filter(|of| of.votes_in().is_some()).count() > 1;
                assert!(waits, "{none:?}");
                std::thread::sleep(ms(300));
                false
            }
            Err(error) => panic!("{error:?}"),
        }
    });
    assert!(visits > 1 && began.elapsed() >= longest, "not at once: {visits} visits");
}

/// Nobody waits for what was never held: an operator says so, once.
#[test]
fn servers_opened_by_hand_vote_at_once_and_one_that_forgot_is_not_opened() {
    let new = ServerKind::ALL.map(|kind| Server::builder(kind).tcp().start());
    let urls: Vec<_> = new.iter().map(Server::url).collect();
    let client = Client::connect(&urls.join(",")).unwrap();
    let opened = |client: &Client| {
        let reports = client.open_new(HELD).unwrap();
        reports.iter().map(|of| (of.is_opened, of.trouble.is_none())).collect::<Vec<_>>()
    };
    assert_eq!(opened(&client), [(true, true); 3]);
    assert_eq!(opened(&client), [(false, true); 3]);
    client.lock(unique_key("opened")).try_acquire().unwrap().unwrap().release().unwrap();
    // It has a marker, and was a replica since it was written.
    assert!(new[2].cmd(&["DEBUG", "CHANGE-REPL-ID"]).is_ok());
    assert_eq!(opened(&client), [(false, true), (false, true), (false, false)]);
    assert!(matches!(
        Client::connect(&urls[0]).unwrap().open_new(std::time::Duration::ZERO),
        Err(tenure::InspectError::Config { .. })
    ));
}

/// A value that is no marker is somebody's, and stays.
#[test]
fn an_invalid_marker_is_left_alone_and_named() {
    let (nodes, key) = (Nodes::start(3), unique_key("unusable"));
    for node in &nodes.0[1..] {
        assert_eq!(node.cmd(&["DEL", "tenure:marker"]).int(), 1);
        assert_eq!(node.cmd(&["RPUSH", "tenure:marker", "x"]).int(), 1);
    }
    let failed = nodes.client().lock(&key).node_limit(LIMIT).acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    assert!(none.failed.iter().all(|of| of.kind() == NodeErrorKind::MarkerUnusable), "{none:?}");
    assert_eq!(nodes.0[1].cmd(&["LLEN", "tenure:marker"]).int(), 1);
    nodes.becomes_free(&key);
}
