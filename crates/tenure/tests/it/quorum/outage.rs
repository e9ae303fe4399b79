//! A failed minority is not noticed, and a failed majority is reported.

use std::time::Duration;

use tenure::{AcquireError, InspectError, NodeErrorKind, blocking::Client};
use tenure_testkit::{Server, eventually, unique_key};

use super::{Nodes, all_catch_up};
use crate::{LIMIT, ms, secs, servers};

/// Everything a caller can ask for.
fn all_of_it_works(nodes: &Nodes, key: &str) {
    let lock = nodes.client().lock(key).ttl(secs(20)).max_ttl(secs(60)).label("me");
    let guard = lock.acquire().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    guard.extend(secs(60)).unwrap();
    assert!(guard.valid_for().unwrap() > secs(30));
    let seen = lock.inspect().unwrap();
    let held = seen.held.unwrap();
    assert_eq!(held.holder.to_string(), "me");
    assert!(held.ttl_left.get().unwrap() > secs(30));
    assert_eq!(seen.last_number, Some(guard.fencing_token()));
    let number = guard.fencing_token();
    let guard = lock.resume(guard.detach()).unwrap().expect("held by this token");
    assert_eq!(guard.fencing_token(), number);
    guard.release().unwrap();
    assert!(lock.inspect().unwrap().held.is_none());
    let stolen = lock.steal().unwrap();
    assert!(stolen.fencing_token() > number);
    assert!(lock.force_release().unwrap().is_some());
    assert!(stolen.release().is_err());
}

#[test]
fn with_one_of_three_down_two_decide() {
    let (nodes, key) = (Nodes::start(3), unique_key("down"));
    nodes.0[1].kill();
    all_of_it_works(&nodes, &key);
    nodes.0[1].start_again();
    nodes.becomes_free(&key);
}

#[test]
fn with_one_of_three_hung_two_decide_and_the_third_keeps_nothing() {
    let (nodes, key) = (Nodes::start(3), unique_key("hung"));
    let frozen = nodes.0[0].freeze_process();
    all_of_it_works(&nodes, &key);
    frozen.thaw();
    nodes.becomes_free(&key);
}

#[test]
fn with_one_of_three_refusing_two_decide() {
    let (nodes, key) = (Nodes::start(3), unique_key("refusing"));
    let full = nodes.0[2].cmd(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(full.is_ok());
    all_of_it_works(&nodes, &key);
}

fn fails_naming(nodes: &Nodes, key: &str, kind: NodeErrorKind, limit: Duration) {
    let lock = nodes.client().lock(key).ttl(secs(600)).node_limit(limit);
    let failed = lock.try_acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    // The two may have failed before the third has granted.
    assert!(none.granted <= 1 && none.needed == 2, "{none:?}");
    let told: Vec<_> = none.failed.iter().map(|e| (e.node().to_owned(), e.kind())).collect();
    let name = |node: &Server| format!("127.0.0.1:{}", node.port().unwrap());
    let down: Vec<_> = nodes.0[1..].iter().map(|node| (name(node), kind)).collect();
    assert_eq!(told, down);
    assert!(matches!(lock.inspect(), Err(InspectError::Unanswered(_))));
    // The one that granted is released, long before the TTL ends.
    eventually(LIMIT, "it is undone", || !servers::exists(&nodes.0[0], key));
}

#[test]
fn with_two_of_three_down_there_is_no_quorum_and_nothing_is_left() {
    let (nodes, key) = (Nodes::start(3), unique_key("two-down"));
    nodes.0[1].kill();
    nodes.0[2].kill();
    fails_naming(&nodes, &key, NodeErrorKind::Unreachable, secs(2));
    nodes.0[1].start_again();
    nodes.0[2].start_again();
    servers::open(&nodes.0[1..]);
    let guard = nodes.client().lock(&key).acquire_within(LIMIT).unwrap();
    guard.release().unwrap();
    nodes.becomes_free(&key);
}

#[test]
fn with_two_of_three_hung_there_is_no_quorum_and_nothing_is_left() {
    let (nodes, key) = (Nodes::start(3), unique_key("two-hung"));
    let frozen = [nodes.0[1].freeze_process(), nodes.0[2].freeze_process()];
    fails_naming(&nodes, &key, NodeErrorKind::TimedOut, ms(200));
    // Their requests arrive now, and the releases behind them.
    drop(frozen);
    nodes.becomes_free(&key);
}

/// Two of three hold the lock for another, and one is down: that is contention, and no outage.
#[test]
fn an_outage_and_contention_are_never_confused() {
    let (nodes, key) = (Nodes::start(3), unique_key("both"));
    let lock = nodes.client().lock(&key).ttl(secs(600));
    let guard = lock.acquire().unwrap();
    all_catch_up(&lock);
    nodes.0[0].kill();
    assert!(nodes.client().lock(&key).try_acquire().unwrap().is_none());
    // One holds it for another, and nobody knows of the two others.
    nodes.0[1].kill();
    let failed = nodes.client().lock(&key).try_acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    assert_eq!((none.granted, none.failed.len()), (0, 2));
    drop(guard);
}

/// All of them grant, and so late that too little of the validity is left: nothing is held, and all
/// are undone long before the TTL ends.
#[test]
fn a_lock_that_is_granted_too_late_is_undone_everywhere() {
    let (nodes, key) = (Nodes::start(3), unique_key("too-late"));
    let proxies = nodes.proxies();
    // 600 s, less 1 % and 2 ms: 198 ms are left for the answers.
    let lock = Client::connect(&servers::behind(&proxies)).unwrap().lock(&key).ttl(secs(600));
    lock.acquire_within(LIMIT).unwrap().release().unwrap();
    let late = lock.min_validity(ms(593_800)).node_limit(secs(5));
    proxies.iter().for_each(|proxy| proxy.delay_replies(ms(500)));
    let failed = late.try_acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    assert!(none.failed.iter().all(|e| e.kind() == NodeErrorKind::TimedOut), "{none:?}");
    nodes.becomes_free(&key);
}
