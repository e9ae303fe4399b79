//! Many who want one lock of several servers.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use tenure::blocking::Client;
use tenure_testkit::{scale, unique_key};

use super::{Nodes, all_catch_up};
use crate::{LIMIT, secs, servers};

/// Each contender, with a client of its own, takes the lock so many times; never two at once, each
/// under a larger number, and with nothing but the lock to protect what they count.
pub(super) fn contend(urls: &str, contenders: usize, times: usize) {
    let key = unique_key("contend");
    let (busy, numbers) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let count = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..contenders {
            scope.spawn(|| {
                let lock = Client::connect(urls).unwrap().lock(&key).ttl(secs(10));
                for _ in 0..times {
                    let guard = lock.acquire_within(LIMIT * 3).unwrap();
                    assert!(!busy.swap(true, Ordering::SeqCst), "two hold it");
                    let counted = count.load(Ordering::Relaxed);
                    // An invitation to any other holder.
                    thread::yield_now();
                    count.store(counted + 1, Ordering::Relaxed);
                    numbers.lock().unwrap().push(guard.fencing_token());
                    busy.store(false, Ordering::SeqCst);
                    guard.release().unwrap();
                }
            });
        }
    });
    let numbers = numbers.into_inner().unwrap();
    assert_eq!(numbers.len(), contenders * times);
    assert_eq!(count.into_inner(), contenders * times, "an update was lost");
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

/// No overlap, no lost update, and every contender gets the lock.
#[test]
fn sixteen_contenders_at_five_nodes_all_get_the_lock() {
    contend(&servers::mixed(5), 16, scale(4, 600));
}

#[test]
fn sixteen_contenders_at_three_nodes_all_get_the_lock() {
    contend(&servers::mixed(3), 16, 2);
}

#[test]
fn three_memory_stores_vote_like_servers() {
    let key = unique_key("tables");
    let urls: Vec<_> = (0..3).map(|table| format!("memory://{key}-{table}")).collect();
    contend(&urls.join(","), 4, 4);
}

#[test]
fn a_split_vote_of_two_nodes_settles() {
    contend(&servers::mixed(2), 4, 4);
}

#[test]
fn a_split_vote_of_four_nodes_settles() {
    contend(&servers::mixed(4), 4, 4);
}

#[test]
fn a_split_vote_of_six_nodes_settles() {
    contend(&servers::mixed(6), 6, scale(4, 200));
}

/// Two of the nodes that are left must agree, so many votes are split.
#[test]
fn contenders_with_one_node_down_all_get_the_lock() {
    let nodes = Nodes::start(3);
    nodes.0[2].kill();
    contend(&nodes.urls(), 6, 3);
}

/// All nodes give the number that is proposed to them, so nothing is left to agree on.
#[test]
fn an_uncontended_acquisition_is_one_request_to_each_node() {
    let (nodes, key) = (Nodes::start(3), unique_key("one-request"));
    let lock = nodes.client().lock(&key).ttl(secs(60));
    lock.acquire().unwrap().release().unwrap();
    all_catch_up(&lock);
    for node in &nodes.0 {
        assert!(node.cmd(&["CONFIG", "RESETSTAT"]).is_ok());
    }
    for _ in 0..10 {
        lock.acquire().unwrap().release().unwrap();
    }
    all_catch_up(&lock);
    for node in &nodes.0 {
        let told = node.cmd(&["INFO", "commandstats"]);
        let stats = String::from_utf8_lossy(told.bytes().unwrap()).into_owned();
        let scripts = stats.lines().find_map(|line| {
            line.strip_prefix("cmdstat_evalsha:calls=")?.split_once(',')?.0.parse().ok()
        });
        assert_eq!(scripts, Some(20 + 2), "with the last look at clock and lock: {stats}");
    }
}
