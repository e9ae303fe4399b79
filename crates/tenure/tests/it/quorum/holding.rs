//! A lease over several servers: who has its key, and what it outlasts.

use std::thread;

use tenure::{LossReason, blocking::Client};
use tenure_testkit::{eventually, unique_key};

use super::{Nodes, all_catch_up, until_all_vote};
use crate::{LIMIT, ms, secs, servers};

#[test]
fn a_node_that_grants_late_joins_the_lease() {
    let (nodes, key) = (Nodes::start(3), unique_key("late"));
    let frozen = nodes.0[2].freeze_process();
    let guard = nodes.client().lock(&key).ttl(secs(600)).acquire().unwrap();
    frozen.thaw();
    nodes.until_had_by(&guard, 3);
    guard.release().unwrap();
    nodes.becomes_free(&key);
}

/// The request for the key is still on its way when the lock is released.
#[test]
fn a_release_follows_the_request_for_the_key() {
    let (nodes, key) = (Nodes::start(3), unique_key("behind"));
    let fence = format!("{{{key}}}:tenure.fence");
    let frozen = nodes.0[0].freeze_process();
    let lock = nodes.client().lock(&key).ttl(secs(600));
    lock.acquire().unwrap().release().unwrap();
    frozen.thaw();
    // The request was carried out, since it left a number; and then the release.
    eventually(LIMIT, "it was granted", || servers::exists(&nodes.0[0], &fence));
    nodes.becomes_free(&key);
}

/// The node has the key since before, and is out of reach until the lock is released.
#[test]
fn a_resumed_lease_is_released_on_a_node_that_was_unreachable() {
    let (nodes, key) = (Nodes::start(3), unique_key("taken-up"));
    let lock = nodes.client().lock(&key).ttl(secs(600));
    let token = lock.acquire().unwrap().detach();
    all_catch_up(&lock);
    let proxies = nodes.proxies();
    proxies[2].black_hole();
    let client = Client::connect(&servers::behind(&proxies)).unwrap();
    let lock = client.lock(&key).ttl(secs(600)).node_limit(ms(100));
    lock.resume(token).unwrap().expect("two of three have it").release().unwrap();
    // Until then the release failed.
    let before = proxies[2].accepted();
    eventually(LIMIT, "it is tried again", || proxies[2].accepted() > before);
    assert!(servers::exists(&nodes.0[2], &key));
    proxies[2].heal();
    nodes.becomes_free(&key);
}

#[test]
fn a_lease_outlasts_the_loss_of_one_node() {
    let (nodes, key) = (Nodes::start(3), unique_key("outlasts"));
    let guard = nodes.client().lock(&key).ttl(ms(1_500)).acquire().unwrap();
    nodes.0[1].kill();
    thread::sleep(ms(4_500));
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

#[test]
fn a_node_that_lost_its_key_is_repaired_and_counts_from_then_on() {
    let (nodes, key) = (Nodes::start(3), unique_key("repair"));
    let lock = nodes.client().lock(&key).ttl(secs(3)).max_ttl(secs(3));
    let guard = lock.acquire().unwrap();
    nodes.0[0].restart_empty();
    nodes.until_had_by(&guard, 3);
    // It counts as soon as nothing that it forgot can be held; two renewals later all know.
    until_all_vote(&lock);
    thread::sleep(secs(2));
    nodes.0[1].kill();
    thread::sleep(secs(6));
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

/// Another may have had that one and the next that forgets, between one renewal and the other.
#[test]
fn a_node_that_was_just_repaired_does_not_count_yet() {
    let (nodes, key) = (Nodes::start(3), unique_key("not-yet"));
    let guard = nodes.client().lock(&key).ttl(secs(6)).acquire_within(LIMIT).unwrap();
    nodes.until_had_by(&guard, 3);
    nodes.0[0].restart_empty();
    nodes.until_had_by(&guard, 3);
    nodes.0[1].restart_empty();
    eventually(LIMIT, "it is lost", || guard.ensure_held().is_err());
    let lost = guard.lost();
    assert!(matches!(lost, LossReason::Gone | LossReason::Expired), "{lost}");
}

/// Another may have held the lock while a majority had no key of ours.
#[test]
fn a_majority_without_the_key_loses_the_lease_and_is_not_repaired() {
    let (nodes, key) = (Nodes::start(3), unique_key("lost"));
    let lock = nodes.client().lock(&key).ttl(secs(3));
    let guard = lock.acquire().unwrap();
    all_catch_up(&lock);
    for node in &nodes.0[..2] {
        assert!(node.cmd(&["FLUSHALL"]).is_ok());
    }
    assert_eq!(guard.lost(), LossReason::Gone);
    let token = guard.token().as_str().to_owned();
    assert!(nodes.having(&key, token.as_bytes()) <= 1);
    assert!(guard.release().is_err());
    nodes.becomes_free(&key);
}

/// Servers forget, are down and are behind, in turn; and no number is ever smaller.
#[test]
fn numbers_grow_over_flushes_restarts_and_clock_steps() {
    let (nodes, key) = (Nodes::start(3), unique_key("numbers"));
    let client = nodes.client();
    let lock = client.lock(&key).ttl(secs(5));
    let mut last = None;
    for round in 0..12 {
        let node = &nodes.0[round % 3];
        let mut frozen = None;
        match round % 4 {
            0 => {
                assert!(node.cmd(&["FLUSHALL"]).is_ok());
                servers::open([node]);
            }
            1 => {
                node.restart_empty();
                servers::open([node]);
            }
            2 => frozen = Some(node.freeze_process()),
            _ => {
                let ahead = format!("{{{key}}}:tenure.fence");
                let number = last.map_or(1, tenure::FencingToken::get) + 1_000_000_000;
                assert!(node.cmd(&["SET", &ahead, &number.to_string(), "PX", "600000"]).is_ok());
            }
        }
        let guard = match round % 5 {
            4 => lock.steal().unwrap(),
            _ => lock.acquire_within(LIMIT).unwrap(),
        };
        let number = guard.fencing_token();
        assert!(Some(number) > last, "{number} after {last:?} in round {round}");
        last = Some(number);
        guard.release().unwrap();
        drop(frozen);
    }
}
