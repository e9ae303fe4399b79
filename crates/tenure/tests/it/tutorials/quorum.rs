//! A lock over several servers, beside clients that do the same by hand.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use tenure::{AcquireError, blocking::Client};
use tenure_testkit::{Server, eventually, scale, unique_key};

use crate::{LIMIT, ms, quorum::Nodes, secs, servers};

/// The well-known recipe, as others write it: the key is set on each server in turn where it is
/// absent, a majority is the lock, and all are released where there is none.
struct ByHand<'a> {
    nodes: &'a [Server],
    key: &'a str,
    value: String,
}

impl<'a> ByHand<'a> {
    fn lock(nodes: &'a [Server], key: &'a str) -> Option<Self> {
        let by_hand = Self { nodes, key, value: unique_key("by-hand") };
        let set =
            |node: &&Server| node.cmd(&["SET", key, &by_hand.value, "NX", "PX", "600000"]).is_ok();
        let count = nodes.iter().filter(set).count();
        if count > nodes.len() / 2 {
            return Some(by_hand);
        }
        by_hand.release();
        None
    }

    /// How many servers had it still.
    fn release(&self) -> i64 {
        let delete = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                      return redis.call('DEL', KEYS[1]) else return 0 end";
        let nodes = self.nodes.iter();
        nodes.map(|node| node.cmd(&["EVAL", delete, "1", self.key, &self.value]).int()).sum()
    }
}

#[test]
fn a_majority_within_the_validity_holds_the_lock() {
    let (nodes, key) = (Nodes::start(5), unique_key("quorum"));
    nodes.0[3..].iter().for_each(Server::kill);
    let guard = nodes.client().lock(&key).ttl(secs(60)).acquire_within(LIMIT).unwrap();
    let left = guard.valid_for().unwrap();
    assert!(left <= ms(60_000 - 602), "{left:?}");
    for node in &nodes.0[..3] {
        assert_eq!(servers::get(node, &key).bytes(), Some(guard.token().as_bytes()));
        let ttl = u64::try_from(servers::pttl(node, &key)).unwrap();
        assert!(left <= ms(ttl) && ttl <= 60_000, "{left:?} of {ttl} ms");
    }
    guard.release().unwrap();
    for node in &nodes.0[..3] {
        eventually(LIMIT, "it is released", || !servers::exists(node, &key));
    }
}

/// Trap: a lock that was not acquired is released only where it was thought to be set.
#[test]
fn a_failed_acquisition_is_released_on_every_server() {
    let (nodes, key) = (Nodes::start(5), unique_key("failed"));
    let lock = nodes.client().lock(&key).ttl(secs(600)).node_limit(secs(2));
    lock.acquire().unwrap().release().unwrap();
    nodes.becomes_free(&key);
    // Two have it for another, and one sets it without a word.
    for node in &nodes.0[..2] {
        assert!(node.cmd(&["SET", &key, "another's", "PX", "600000"]).is_ok());
    }
    let frozen = nodes.0[2].freeze_process();
    let failed = lock.try_acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    assert_eq!((none.granted, none.failed.len()), (2, 1), "{none:?}");
    frozen.thaw();
    for node in &nodes.0[2..] {
        eventually(LIMIT, "it is released", || !servers::exists(node, &key));
    }
    nodes.0[..2].iter().for_each(|node| {
        assert_eq!(servers::get(node, &key).text(), Some("another's"));
    });
}

#[test]
fn a_hand_written_redlock_and_ours_exclude_each_other() {
    let (nodes, key) = (Nodes::start(5), unique_key("by-hand"));
    let lock = nodes.client().lock(&key).ttl(secs(600));
    let theirs = ByHand::lock(&nodes.0, &key).expect("nobody holds it");
    assert!(lock.try_acquire().unwrap().is_none());
    let missed = lock.acquire_within(ms(200));
    let Err(AcquireError::TimedOut { holder, .. }) = missed else { panic!("{missed:?}") };
    assert!(holder.is_foreign(), "{holder}");
    assert_eq!(theirs.release(), 5, "ours has taken some");

    let guard = lock.acquire_within(LIMIT).unwrap();
    let token = guard.token().as_bytes().to_vec();
    nodes.until_had_by(&guard, 5);
    assert!(ByHand::lock(&nodes.0, &key).is_none());
    assert_eq!(nodes.having(&key, &token), 5);
    guard.release().unwrap();
    nodes.becomes_free(&key);
    // A majority is enough for either, whichever has the others.
    for node in &nodes.0[..2] {
        assert!(node.cmd(&["SET", &key, "a third's", "PX", "600000"]).is_ok());
    }
    let theirs = ByHand::lock(&nodes.0, &key).expect("three are free");
    assert!(lock.try_acquire().unwrap().is_none());
    for node in &nodes.0[..2] {
        assert_eq!(node.cmd(&["DEL", &key]).int(), 1);
    }
    assert!(lock.try_acquire().unwrap().is_none());
    assert_eq!(theirs.release(), 3);
    let guard = lock.acquire_within(LIMIT).unwrap();
    assert!(ByHand::lock(&nodes.0, &key).is_none());
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

/// Both at once, again and again: never two of them, and each gets it now and then.
#[test]
fn hand_written_redlocks_and_ours_contend_and_never_overlap() {
    let (nodes, key) = (Nodes::start(5), unique_key("contend"));
    let busy = AtomicBool::new(false);
    let hold = || {
        assert!(!busy.swap(true, Ordering::SeqCst), "two hold it");
        thread::sleep(ms(2));
        busy.store(false, Ordering::SeqCst);
    };
    let (rounds, theirs) = (scale(10, 500), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let lock = Client::connect(&nodes.urls()).unwrap().lock(&key).ttl(secs(600));
                for _ in 0..rounds {
                    let guard = lock.acquire_within(LIMIT * 3).unwrap();
                    hold();
                    guard.release().unwrap();
                }
            });
        }
        scope.spawn(|| {
            while theirs.load(Ordering::SeqCst) < rounds {
                if let Some(held) = ByHand::lock(&nodes.0, &key) {
                    hold();
                    theirs.fetch_add(1, Ordering::SeqCst);
                    assert!(held.release() > 2, "ours has taken some");
                }
                thread::sleep(ms(5));
            }
        });
    });
    nodes.becomes_free(&key);
}
