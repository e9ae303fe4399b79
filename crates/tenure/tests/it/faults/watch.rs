//! A change of a lease's key by another client is reported at once, long before the next renewal.

use std::time::Duration;

use tenure::{LossReason, Renewal};
use tenure_testkit::{Monitor, Server, ServerKind, unique_key};

use super::{connect, is_free, ms, private, when_lost, with_each_kind};

/// So long that neither the local clock nor a renewal reports anything while a test runs.
const TTL: Duration = Duration::from_secs(3_600);

/// Waits until the server has been asked to report changes of the key.
fn until_watched(monitor: &mut Monitor, key: &str) {
    let asked = format!("\"GETRANGE\" \"{key}\"");
    monitor.lines_until(|line| line.contains(&asked) && !line.contains("lua]"));
}

#[test]
fn a_loss_caused_by_another_client_is_reported_at_once() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        let client = connect(&server.url());
        type Deed = (&'static str, fn(&Server, &str));
        let deeds: [Deed; 6] = [
            ("deleted", |server, key| _ = server.cmd(&["DEL", key])),
            ("unlinked", |server, key| _ = server.cmd(&["UNLINK", key])),
            ("flushed", |server, _| _ = server.cmd(&["FLUSHALL"])),
            ("renamed", |server, key| _ = server.cmd(&["RENAME", key, "elsewhere"])),
            ("ended", |server, key| _ = server.cmd(&["PEXPIRE", key, "1"])),
            ("released by force", |server, key| {
                connect(&server.url()).lock(key).force_release().unwrap();
            }),
        ];
        for (deed, does) in deeds {
            for renewal in [Renewal::Background, Renewal::Manual] {
                let key = unique_key("watched");
                let mut monitor = server.monitor();
                let guard = client.lock(&key).ttl(TTL).renewal(renewal).acquire().unwrap();
                until_watched(&mut monitor, &key);
                does(&server, &key);
                assert_eq!(when_lost(&guard), LossReason::Gone, "{deed}, {kind}");
            }
        }
    });
}

#[test]
fn a_stolen_lock_is_reported_with_the_new_holder() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        let client = connect(&server.url());
        for steals in [false, true] {
            let key = unique_key("taken");
            let mut monitor = server.monitor();
            let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
            until_watched(&mut monitor, &key);
            let thief = connect(&server.url());
            let stolen = steals.then(|| thief.lock(&key).label("thief").steal().unwrap());
            if !steals {
                server.cmd(&["SET", &key, "theirs"]);
            }
            let LossReason::Taken { holder } = when_lost(&guard) else {
                panic!("not taken, {kind}")
            };
            assert_eq!(holder.is_foreign(), !steals, "{kind}");
            drop(stolen);
        }
    });
}

/// The server forgets what it tracks when it is changed, and when the connection ends.
#[test]
fn a_lease_stays_watched_after_renewals_and_reconnects() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        let client = connect(&server.url());
        let key = unique_key("watched-on");
        let mut monitor = server.monitor();
        let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
        until_watched(&mut monitor, &key);
        guard.extend(TTL * 2).unwrap();
        until_watched(&mut monitor, &key);
        // Another's change that leaves the lock alone.
        server.cmd(&["PEXPIRE", &key, "3000000"]);
        until_watched(&mut monitor, &key);
        let mut raw = server.raw();
        raw.cmd(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        raw.cmd(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        // The next op opens a connection again.
        assert!(client.lock(unique_key("another")).inspect().is_ok());
        let mut monitor = server.monitor();
        guard.extend(TTL * 2).unwrap();
        until_watched(&mut monitor, &key);
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
        server.cmd(&["DEL", &key]);
        assert_eq!(when_lost(&guard), LossReason::Gone, "{kind}");
    });
}

/// Being watched gives a lease no longer life than its holder asked for.
#[test]
fn watching_a_lease_does_not_extend_it() {
    let server = private().start();
    let client = connect(&server.url());
    let key = unique_key("no-longer");
    let mut monitor = server.monitor();
    let lock = client.lock(&key).ttl(TTL).renewal(Renewal::Manual);
    let guard = lock.acquire().unwrap();
    until_watched(&mut monitor, &key);
    server.cmd(&["PEXPIRE", &key, "1000000"]);
    until_watched(&mut monitor, &key);
    let left = server.cmd(&["PTTL", &key]).int();
    assert!((1..=1_000_000).contains(&left), "{left}");
    guard.release().unwrap();
    assert!(is_free(&server, &key));
}

/// A user that may not have keys tracked has everything else.
#[test]
fn without_tracking_a_loss_is_noticed_by_the_next_renewal() {
    for kind in ServerKind::ALL {
        let server = Server::builder(kind).tcp().start();
        server.cmd(&["ACL", "SETUSER", "default", "-client|tracking"]);
        let client = connect(&server.url());
        let key = unique_key("untracked");
        let guard = client.lock(&key).ttl(ms(3_000)).acquire().unwrap();
        let mut monitor = server.monitor();
        let is_renewal = |line: &str| line.contains("\"PEXPIRE\"") && line.contains(&key);
        monitor.lines_until(is_renewal);
        monitor.lines_until(is_renewal);
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()), "{kind}");
        server.cmd(&["DEL", &key]);
        assert_eq!(when_lost(&guard), LossReason::Gone, "{kind}");
    }
}
