//! Fencing numbers only grow.

use std::time::Duration;

use tenure::{NodeErrorKind, Wait};
use tenure_testkit::{Server, unique_key};

use super::{LIMIT, TTL, connect, is_free, node_error, private, shared, with_each_kind};

fn next_number(server: &Server, key: &str) -> u64 {
    let lock = connect(&server.url()).lock(key).ttl(TTL).wait(Wait::Within(LIMIT));
    let guard = lock.acquire().unwrap();
    let number = guard.fencing_token().get();
    guard.release().unwrap();
    number
}

fn fence(key: &str) -> String {
    format!("{{{key}}}:tenure.fence")
}

/// The counter is lost with all else; the server's clock is not.
#[test]
fn numbers_grow_over_a_flush_and_an_empty_restart() {
    with_each_kind(|kind| {
        let server = Server::start(kind);
        let key = unique_key("amnesia");
        let mut last = next_number(&server, &key);
        for round in 0..4 {
            if round % 2 == 0 {
                server.cmd(&["FLUSHALL"]);
            } else {
                server.restart_empty();
            }
            let number = next_number(&server, &key);
            assert!(number > last, "{kind}: {number} after {last}");
            last = number;
        }
    });
}

/// The clock steps back; the counter does not.
#[test]
fn numbers_grow_while_the_server_clock_steps_back() {
    let server = private().shim().start();
    let key = unique_key("clock-back");
    let mut last = next_number(&server, &key);
    for _ in 0..5 {
        server.clock().step_ms(-3_600_000);
        let number = next_number(&server, &key);
        assert!(number > last, "{number} after {last}");
        last = number;
    }
    assert!(server.cmd(&["PTTL", &fence(&key)]).int() > 0, "the counter lives on, and ends");
}

/// The clock stands still, and every lock of that moment still has a number of its own.
#[test]
fn numbers_grow_while_the_server_clock_stands_still() {
    let server = private().shim().start();
    server.clock().freeze();
    let key = unique_key("clock-stands");
    let numbers: Vec<_> = (0..20).map(|_| next_number(&server, &key)).collect();
    assert!(numbers.is_sorted_by(|earlier, later| earlier < later), "{numbers:?}");
}

/// The names that we keep for ourselves hold something else: a typed error, and no lock.
#[test]
fn an_invalid_fence_key_grants_nothing_and_leaves_nothing() {
    let limit = (1_u64 << 53) - 1;
    let client = connect(&shared().url());
    let set = |key: &str, value: &str| shared().cmd(&["SET", &fence(key), value]);
    for value in ["garbage", "-1", "1.5", "1e15", " 7", "9007199254740992", "99999999999999999999"]
    {
        let key = unique_key("fence-garbage");
        set(&key, value);
        let error = client.lock(&key).ttl(TTL).acquire().unwrap_err();
        assert_eq!(node_error(&error).kind(), NodeErrorKind::FenceUnusable, "{value}");
        assert!(!node_error(&error).is_retryable());
        assert!(is_free(shared(), &key), "{value}: a lock is left");
        let left = shared().cmd(&["GET", &fence(&key)]);
        assert_eq!(left.text(), Some(value), "not ours to repair");
        shared().cmd(&["DEL", &fence(&key)]);
        assert!(client.lock(&key).ttl(TTL).try_acquire().unwrap().is_some(), "{value}");
    }
    let key = unique_key("fence-type");
    shared().cmd(&["RPUSH", &fence(&key), "x"]);
    let error = client.lock(&key).ttl(TTL).acquire().unwrap_err();
    assert_eq!(node_error(&error).kind(), NodeErrorKind::FenceUnusable);
    assert!(is_free(shared(), &key));
    shared().cmd(&["DEL", &fence(&key)]);

    // The last number but one is good for one more lock; the last is good for none.
    let key = unique_key("fence-limit");
    set(&key, &(limit - 1).to_string());
    assert_eq!(next_number(shared(), &key), limit);
    let error = client.lock(&key).ttl(TTL).acquire().unwrap_err();
    assert_eq!(node_error(&error).kind(), NodeErrorKind::FenceUnusable);
    assert!(is_free(shared(), &key));
    shared().cmd(&["DEL", &fence(&key)]);
}

/// Extending, coming back and losing the lock: the number stays the acquisition's own.
#[test]
fn extending_resuming_and_losing_a_lock_keep_its_number() {
    let client = connect(&shared().url());
    let key = unique_key("number");
    let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
    let number = guard.fencing_token();
    guard.extend(Duration::from_secs(20)).unwrap();
    assert_eq!(guard.fencing_token(), number);
    let token = guard.detach();
    let guard = client.lock(&key).ttl(TTL).resume(token).unwrap().expect("still held");
    assert_eq!(guard.fencing_token(), number);
    let inspection = client.lock(&key).inspect().unwrap();
    assert_eq!(inspection.last_number, Some(number));
    let thief = connect(&shared().url()).lock(&key).steal().unwrap();
    assert!(guard.extend(TTL).is_err());
    assert!(guard.ensure_held().is_err());
    assert_eq!(guard.fencing_token(), number);
    assert!(thief.fencing_token() > number);
}
