//! Renewal.

use std::thread;

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, eventually, unique_key};

use crate::{
    LIMIT, ms, secs,
    servers::{any, exists, get, pttl},
};

#[test]
fn a_lock_is_renewed_until_it_is_released() {
    let key = unique_key("renewing");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).ttl(ms(2_500)).acquire().unwrap();
    let value = get(any(), &key);
    thread::sleep(secs(6));
    assert_eq!(get(any(), &key), value);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
    assert!(!exists(any(), &key));
}

/// Trap: one error ends the renewal permanently, and the holder is not notified.
#[test]
fn a_failed_renewal_does_not_end_renewal() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let guard = client.lock("k").ttl(secs(3)).acquire().unwrap();
    let asked = |line: &str| line.contains(guard.token().as_str()) && !line.contains(" lua] ");
    assert!(server.cmd(&["CONFIG", "SET", "min-replicas-to-write", "1"]).is_ok());
    let mut monitor = server.monitor();
    // Two renewals in a row are refused.
    monitor.lines_until(asked);
    monitor.lines_until(asked);
    let stuck = pttl(&server, "k");
    assert!(stuck < 2_500, "{stuck}");
    assert!(server.cmd(&["CONFIG", "SET", "min-replicas-to-write", "0"]).is_ok());
    eventually(LIMIT, "it is renewed", || pttl(&server, "k") > stuck);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

/// Trap: a second Lock on the same object leaks the first watchdog. tidy: allow
#[test]
fn after_a_release_only_the_next_lease_is_renewed() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let lock = client.lock("k").ttl(secs(3));
    let first = lock.acquire().unwrap();
    let gone = first.token().as_str().to_owned();
    first.release().unwrap();
    let second = lock.acquire().unwrap();
    let mut monitor = server.monitor();
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.extend(monitor.lines_until(|line| line.contains(second.token().as_str())));
    }
    assert!(!seen.iter().any(|line| line.contains(&gone)), "{seen:?}");
    second.release().unwrap();
    // After the last release there is nothing to renew at all; a renewal would come every 990 ms.
    drop(monitor.so_far());
    thread::sleep(ms(1_200));
    let after = monitor.so_far();
    assert!(after.is_empty(), "{after:?}");
}

/// Trap: a release that races a renewal. Here the renewal is under way when the release is sent.
#[test]
fn a_release_concurrent_with_a_renewal_leaves_no_key() {
    let client = Client::connect(&any().url()).unwrap();
    for round in 0..20 {
        let key = unique_key("race");
        let guard = client.lock(&key).ttl(ms(100)).acquire_within(LIMIT).unwrap();
        thread::sleep(ms(30 + round % 6));
        // A busy machine may have lost the lease by now; that is not what is looked at.
        drop(guard.release());
        assert!(!exists(any(), &key), "{}", pttl(any(), &key));
    }
    client.close().unwrap();
}

#[test]
fn the_holder_is_notified_when_renewal_has_failed_too_long() {
    let key = unique_key("reported");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).ttl(ms(1_500)).acquire().unwrap();
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
    let reason = guard.lost();
    assert_eq!(reason, tenure::LossReason::Gone);
    eventually(LIMIT, "it stays gone", || !exists(any(), &key));
}
