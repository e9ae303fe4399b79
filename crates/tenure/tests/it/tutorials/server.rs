//! What the server contributes: databases, passwords, replies and TTLs.

use std::{error::Error, thread};

use tenure::{AcquireError, NodeErrorKind, blocking::Client};
use tenure_testkit::{Proxy, Server, ServerKind, unique_key};

use crate::{
    ms, ran_out, secs,
    servers::{any, exists, get, pttl},
};

/// Holders of the kind go-redis makes by hand: `SET NX PX` with a hex token.
/// Trap: "the context is over" and "busy" are the same answer.
#[test]
fn a_plain_holder_is_busy_and_not_an_error() {
    let key = unique_key("servers-side");
    let token = "6f1ed002ab5595859014ebf0951522d9";
    assert!(any().cmd(&["SET", &key, token, "NX", "PX", "60000"]).is_ok());
    let lock = Client::connect(&any().url()).unwrap().lock(&key);
    assert!(lock.try_acquire().unwrap().is_none());
    assert!(ran_out(&lock.acquire_within(ms(50))));
    let busy = lock.acquire_within(ms(0)).unwrap_err();
    assert!(matches!(&busy, AcquireError::TimedOut { holder, .. } if holder.is_foreign()));
    assert_eq!(get(any(), &key).text(), Some(token));
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
}

/// Traps: released by a value that was never set, and 6 s of work under a TTL of 5.
#[test]
fn a_lock_in_a_private_database_with_a_password() {
    let server = Server::builder(ServerKind::Redis70).tcp().password("p@ss/w:rd").start();
    let url = format!("redis://:p%40ss%2Fw%3Ard@127.0.0.1:{}/2", server.port().unwrap());
    let client = Client::connect(&url).unwrap();
    let guard = client.lock("k").ttl(ms(2_500)).acquire().unwrap();
    let in_database = |number: &str, command: &[&str]| {
        let mut raw = server.raw();
        assert!(raw.cmd(&["SELECT", number]).is_ok());
        raw.cmd(command)
    };
    assert_eq!(in_database("2", &["GET", "k"]).text(), Some(guard.token().as_str()));
    assert_eq!(in_database("0", &["DBSIZE"]).int(), 0);
    // Work that is longer than the TTL.
    thread::sleep(secs(3));
    assert_eq!(in_database("2", &["GET", "k"]).text(), Some(guard.token().as_str()));
    guard.release().unwrap();
    assert_eq!(in_database("2", &["EXISTS", "k"]).int(), 0);
}

#[test]
fn a_wrong_password_is_an_error_that_does_not_show_it() {
    let server = Server::builder(ServerKind::Valkey91).tcp().password("right").start();
    let url = format!("redis://:wr0ng-one@127.0.0.1:{}", server.port().unwrap());
    let client = Client::connect(&url).unwrap();
    let refused = client.lock("k").acquire().unwrap_err();
    let mut next: Option<&dyn Error> = Some(&refused);
    let mut chain = Vec::new();
    while let Some(error) = next {
        chain.push(format!("{error} {error:?}"));
        next = error.source();
    }
    assert!(chain[0].contains("WRONGPASS"), "{chain:?}");
    assert!(chain.iter().all(|text| !text.contains("wr0ng-one")), "{chain:?}");
}

/// The three conditions: set only if absent, with an expiry in the same step, by a value that is
/// the holder's alone. That it is one step is shown by `value_and_ttl_are_set_in_one_command…`.
#[test]
fn a_lock_is_set_only_if_absent_with_a_ttl_and_a_unique_value() {
    let key = unique_key("servers-side");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key).ttl(secs(60));
    let guard = lock.acquire().unwrap();
    let value = get(any(), &key);
    for _ in 0..5 {
        assert!(lock.try_acquire().unwrap().is_none());
        assert_eq!(get(any(), &key), value);
        assert!(pttl(any(), &key) > 0);
    }
    guard.release().unwrap();
    let next = lock.acquire().unwrap();
    assert_ne!(get(any(), &key), value);
    next.release().unwrap();
}

/// Traps: nil reply, error and no reply all logged and then the same; and a TTL by the wrong
/// factor.
#[test]
fn a_refusal_and_a_missing_reply_are_different_errors() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let client = Client::connect(&proxy.url()).unwrap();
    let lock = client.lock("k").ttl(secs(1));
    let kind = |failed| match failed {
        Err(AcquireError::NoQuorum(none)) => none.failed[0].kind(),
        other => panic!("{other:?}"),
    };
    // No: an outcome.
    let guard = lock.acquire().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    guard.release().unwrap();
    // An error: the server's own.
    assert!(server.cmd(&["CONFIG", "SET", "min-replicas-to-write", "1"]).is_ok());
    assert_eq!(kind(lock.try_acquire()), NodeErrorKind::NoReplicas);
    assert!(server.cmd(&["CONFIG", "SET", "min-replicas-to-write", "0"]).is_ok());
    // Silence: nobody knows, and nothing is left in the end.
    proxy.drop_next_replies(1);
    assert_eq!(kind(lock.try_acquire()), NodeErrorKind::TimedOut);
    proxy.heal();
    client.close().unwrap();
    assert!(!exists(&server, "k"));
}

#[test]
fn the_ttl_on_the_server_is_the_one_that_was_set() {
    let client = Client::connect(&any().url()).unwrap();
    for set in [ms(1_500), secs(7), ms(12_345), secs(3_600)] {
        let key = unique_key("servers-side");
        let guard = client.lock(&key).ttl(set).acquire().unwrap();
        let left = pttl(any(), &key);
        let set = i64::try_from(set.as_millis()).unwrap();
        assert!(left <= set && left > set / 3, "{left} of {set}");
        guard.release().unwrap();
    }
}
