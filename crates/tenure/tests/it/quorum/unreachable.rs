//! Nodes that cannot be reached, are tried again, and come back.

use std::time::{Duration, Instant};

use tenure::{
    AcquireError, NoQuorum,
    blocking::{Client, Lock},
};
use tenure_testkit::{Proxy, eventually, unique_key};

use super::Nodes;
use crate::{LIMIT, secs, servers};

/// Two of three servers behind proxies.
fn two_behind(nodes: &Nodes, key: &str) -> ([Proxy; 2], Lock) {
    let proxies = [1, 2].map(|index| Proxy::to(&nodes.0[index]));
    let first = servers::quorum(&nodes.0[..1]);
    let client = Client::connect(&format!("{first},{}", servers::behind(&proxies)));
    // No answer that is missing ends an attempt here.
    let lock = client.unwrap().lock(key).node_limit(secs(600));
    lock.acquire().unwrap().release().unwrap();
    (proxies, lock)
}

/// One attempt, to which two of the servers do not reply.
fn try_in_vain(lock: &Lock) -> NoQuorum {
    match lock.try_acquire() {
        Err(AcquireError::NoQuorum(none)) => none,
        other => panic!("{other:?}"),
    }
}

/// Waits until both are known to be out of reach: they are tried a second time, so the first was
/// a failure. Until then an attempt may have had a connection that was just ending.
fn both_are_known_to_be_gone(lock: &Lock, proxies: &[Proxy; 2]) {
    let before = proxies.each_ref().map(Proxy::accepted);
    eventually(LIMIT, "both are tried a second time", || {
        try_in_vain(lock);
        proxies.iter().zip(before).all(|(proxy, before)| proxy.accepted() >= before + 2)
    });
}

/// What each attempt takes that is made until the server behind the proxy has been tried so often.
fn attempts_while_tried(lock: &Lock, proxy: &Proxy, times: u64) -> Vec<Duration> {
    let (before, mut attempts) = (proxy.accepted(), Vec::new());
    eventually(LIMIT, "it is tried", || {
        let began = Instant::now();
        try_in_vain(lock);
        attempts.push(began.elapsed());
        proxy.accepted() >= before + times
    });
    attempts
}

/// It is tried four times a second. If each attempt waited for it a moment, of 50 ms, there would
/// be five of them for each time.
#[test]
fn an_unreachable_node_is_not_waited_for() {
    let (nodes, key) = (Nodes::start(3), unique_key("reach"));
    let (proxies, lock) = two_behind(&nodes, &key);
    // The proxies accept, and find nobody.
    nodes.0[1].kill();
    nodes.0[2].kill();
    both_are_known_to_be_gone(&lock, &proxies);
    // The pauses between the times grow.
    attempts_while_tried(&lock, &proxies[0], 8);
    let attempts = attempts_while_tried(&lock, &proxies[0], 5).len();
    assert!(attempts > 50, "{attempts} while it was tried five times");
}

/// It is tried for 2 s each time. If an attempt waited for that there would be one such attempt
/// each time; a machine that stands still for a second does not do so always.
#[test]
fn a_retried_node_is_waited_for_only_briefly() {
    let (nodes, key) = (Nodes::start(3), unique_key("again"));
    let (proxies, lock) = two_behind(&nodes, &key);
    // New connections are accepted, and nothing is answered.
    proxies.iter().for_each(Proxy::black_hole);
    proxies.iter().for_each(Proxy::cut);
    both_are_known_to_be_gone(&lock, &proxies);
    let is_short = |attempts: Vec<_>| attempts.iter().all(|took| *took < secs(1));
    let has_short = (0..5).any(|_| is_short(attempts_while_tried(&lock, &proxies[0], 1)));
    assert!(has_short, "each time it was waited for");
    proxies.iter().for_each(Proxy::heal);
    lock.acquire_within(LIMIT).unwrap().release().unwrap();
    nodes.becomes_free(&key);
}

#[test]
fn a_node_that_returns_is_used_again() {
    let (nodes, key) = (Nodes::start(3), unique_key("back"));
    let lock = nodes.client().lock(&key).ttl(secs(600));
    lock.acquire().unwrap().release().unwrap();
    for _ in 0..2 {
        nodes.0[1].kill();
        nodes.0[2].kill();
        try_in_vain(&lock);
        nodes.0[1].start_again();
        nodes.0[2].start_again();
        servers::open(&nodes.0[1..]);
        let mut guard = None;
        eventually(LIMIT, "they are asked", || {
            guard = lock.try_acquire().ok().flatten();
            guard.is_some()
        });
        let guard = guard.unwrap();
        nodes.until_had_by(&guard, 3);
        guard.release().unwrap();
        nodes.becomes_free(&key);
    }
}
