//! Servers whose numbers differ, and what becomes of a lease's.

use tenure::{ConfigError, ExtendError, Token};
use tenure_testkit::{Server, eventually, unique_key};

use super::{Nodes, all_catch_up};
use crate::{LIMIT, secs, servers};

/// Ahead of every clock here, so that it is the counters that count.
fn ahead() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros();
    u64::try_from(now).unwrap() + 600_000_000
}

fn fence(key: &str) -> String {
    format!("{{{key}}}:tenure.fence")
}

fn set(node: &Server, key: &str, value: &str) {
    assert!(node.cmd(&["SET", key, value, "PX", "600000"]).is_ok());
}

fn last_number(node: &Server, key: &str) -> u64 {
    let value = servers::get(node, &fence(key));
    value.text().expect("a number").parse().unwrap()
}

/// It may have granted before the two others agreed, or after.
#[test]
fn a_node_that_granted_a_smaller_number_is_raised_to_the_number_of_the_lease() {
    let nodes = Nodes::start(3);
    for round in 0..6 {
        let (key, ahead) = (unique_key("behind"), ahead());
        for (index, node) in nodes.0.iter().enumerate() {
            let is_behind = index == round % 3;
            set(node, &fence(&key), &(ahead - 5 * u64::from(is_behind)).to_string());
        }
        let guard = nodes.client().lock(&key).ttl(secs(600)).acquire_within(LIMIT).unwrap();
        let number = guard.fencing_token().get();
        assert!(number > ahead);
        let agree = || nodes.0.iter().all(|node| last_number(node, &key) == number);
        eventually(LIMIT, "all have its number", agree);
        guard.release().unwrap();
    }
}

/// The next attempt is then one round trip, although one of them had forgotten the counter.
#[test]
fn a_release_brings_the_number_to_every_node() {
    let (nodes, key) = (Nodes::start(3), unique_key("brought"));
    let lock = nodes.client().lock(&key).ttl(secs(600)).node_limit(LIMIT);
    let guard = lock.acquire_within(LIMIT).unwrap();
    all_catch_up(&lock);
    let number = guard.fencing_token().get();
    set(&nodes.0[1], &fence(&key), "7");
    guard.release().unwrap();
    let have_it = || nodes.0.iter().all(|node| last_number(node, &key) == number);
    eventually(LIMIT, "all have its number", have_it);
}

/// One of the two that answer is behind: its number may have been an earlier lease's.
#[test]
fn a_resumed_lease_has_no_smaller_number() {
    let (nodes, key) = (Nodes::start(3), unique_key("taken-up"));
    let token: Token = "0123456789abcdef0123456789abcdef@me".parse().unwrap();
    let ahead = ahead();
    for (node, number) in nodes.0.iter().zip([ahead, ahead + 1, ahead + 1]) {
        set(node, &key, token.as_str());
        set(node, &fence(&key), &number.to_string());
    }
    nodes.0[2].kill();
    let guard = nodes.client().lock(&key).ttl(secs(600)).resume(token).unwrap().expect("held");
    assert_eq!(guard.fencing_token().get(), ahead + 1);
    assert_eq!(last_number(&nodes.0[0], &key), ahead + 1);
    guard.release().unwrap();
}

/// Nor when only one is left that has the number.
#[test]
fn a_lease_without_a_majority_for_its_number_is_not_resumed() {
    let (nodes, key) = (Nodes::start(3), unique_key("no-majority"));
    let token: Token = "0123456789abcdef0123456789abcdef@me".parse().unwrap();
    set(&nodes.0[0], &key, token.as_str());
    set(&nodes.0[0], &fence(&key), &ahead().to_string());
    nodes.0[1].kill();
    nodes.0[2].kill();
    assert!(nodes.client().lock(&key).ttl(secs(600)).resume(token).is_err());
}

#[test]
fn inspect_reports_the_number_that_a_majority_knows() {
    let (nodes, key) = (Nodes::start(3), unique_key("known"));
    let lock = nodes.client().lock(&key).ttl(secs(600));
    let guard = lock.acquire_within(LIMIT).unwrap();
    nodes.until_had_by(&guard, 3);
    // It was ahead of the two others when they agreed; and it has lost the key.
    set(&nodes.0[1], &fence(&key), &ahead().to_string());
    assert_eq!(lock.inspect().unwrap().last_number, Some(guard.fencing_token()));
    assert_eq!(nodes.0[1].cmd(&["DEL", &key]).int(), 1);
    assert_eq!(lock.inspect().unwrap().last_number, Some(guard.fencing_token()));
    guard.release().unwrap();
}

/// A server that forgot the key votes again when the longest TTL is over, and not later.
#[test]
fn an_extension_beyond_the_max_ttl_is_refused() {
    let (nodes, key) = (Nodes::start(3), unique_key("beyond"));
    let lock = nodes.client().lock(&key).ttl(secs(20)).max_ttl(secs(40));
    let guard = lock.acquire_within(LIMIT).unwrap();
    let refused = guard.extend(secs(41));
    let Err(ExtendError::Config { error: ConfigError::Setting { .. }, .. }) = &refused else {
        panic!("{refused:?}")
    };
    let words = refused.unwrap_err().to_string();
    assert!(words.contains("41s") && words.contains("max_ttl"), "{words}");
    assert!(guard.valid_for().unwrap() <= secs(20));
    guard.extend(secs(40)).unwrap();
    assert!(guard.valid_for().unwrap() > secs(30));
    guard.release().unwrap();
}
