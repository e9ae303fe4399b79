//! A server that was down while a lock was released.

use std::thread;

use tenure_testkit::{Server, ServerKind, eventually, unique_key};

use super::{Nodes, all_catch_up};
use crate::{LIMIT, secs, servers};

/// Its key outlives the server, and nobody asks it for anything any more.
#[test]
fn releases_that_a_server_missed_are_repeated_when_it_returns() {
    let kinds = ServerKind::ALL.into_iter();
    let nodes = kinds.map(|kind| Server::builder(kind).tcp().durable().start());
    let (nodes, key) = (Nodes::of(nodes), unique_key("missed"));
    let client = nodes.client();
    let guards: Vec<_> = (0..50)
        .map(|index| {
            client.lock(format!("{key}-{index}")).ttl(secs(600)).acquire_within(LIMIT).unwrap()
        })
        .collect();
    let down = &nodes.0[1];
    guards.iter().for_each(|guard| nodes.until_had_by(guard, 3));
    down.kill();
    guards.into_iter().for_each(|guard| guard.release().unwrap());
    // So long that every request that was due has failed.
    thread::sleep(secs(2));
    down.start_again();
    for index in 0..50 {
        let key = format!("{key}-{index}");
        eventually(LIMIT, "it is released", || !servers::exists(down, &key));
    }
}

/// A server that was down when the lock was granted cannot have the key: it is not asked again.
#[test]
fn a_release_is_repeated_only_for_a_server_that_may_have_the_key() {
    for has_key in [true, false] {
        let nodes = Nodes::start(3);
        if !has_key {
            nodes.0[2].kill();
        }
        let client = nodes.client();
        let lock = client.lock(unique_key("may-have-it")).ttl(secs(60)).node_limit(LIMIT);
        let guard = lock.acquire_within(LIMIT).unwrap();
        all_catch_up(&lock);
        if has_key {
            nodes.0[2].kill();
        }
        guard.release().unwrap();
        let unanswered = client.close().map_err(|error| error.unanswered).err();
        assert_eq!(unanswered, has_key.then_some(1));
    }
}

/// It was asked for the key by a script that it has forgotten, and the release is on its way behind
/// that in full.
#[test]
fn a_request_refused_by_noscript_is_not_resent_after_its_undo() {
    let (nodes, key) = (Nodes::start(3), unique_key("forgot-how"));
    let lock = nodes.client().lock(&key).ttl(secs(600)).node_limit(LIMIT);
    for node in &nodes.0 {
        assert!(node.cmd(&["SET", &key, "theirs", "PX", "600000"]).is_ok());
    }
    assert!(lock.try_acquire().unwrap().is_none());
    assert_eq!(nodes.0[2].cmd(&["DEL", &key]).int(), 1);
    assert!(nodes.0[2].cmd(&["SCRIPT", "FLUSH"]).is_ok());
    let frozen = nodes.0[2].freeze_process();
    assert!(lock.try_acquire().unwrap().is_none(), "two of three refuse");
    frozen.thaw();
    // The first comes behind the release, and the second behind whatever was asked again.
    for _ in 0..2 {
        assert!(lock.inspect().unwrap().held.is_some());
        all_catch_up(&lock);
    }
    assert!(!servers::exists(&nodes.0[2], &key));
}

/// The replies of the two others decide, and the release is on its way to the third.
#[test]
fn a_hung_server_delays_neither_inspect_nor_a_release_by_token() {
    let (nodes, key) = (Nodes::start(3), unique_key("hung"));
    let lock = nodes.client().lock(&key).ttl(secs(600));
    let guard = lock.acquire_within(LIMIT).unwrap();
    nodes.until_had_by(&guard, 3);
    let token = guard.detach();
    let frozen = nodes.0[1].freeze_process();
    assert!(lock.inspect().unwrap().held.is_some());
    lock.release(&token).unwrap();
    assert!(lock.inspect().unwrap().held.is_none());
    frozen.thaw();
    nodes.becomes_free(&key);
}
