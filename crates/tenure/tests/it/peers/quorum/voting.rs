//! Acquiring a lock that several servers vote on.

use std::{thread, time::Instant};

use tenure::{AcquireError, NodeErrorKind, Renewal, blocking::Client};
use tenure_testkit::{Proxy, unique_key};

use super::super::lost_replies::{the_clean_up_spares_the_holder, warm};
use crate::{LIMIT, ms, quorum::Nodes, secs, servers::behind};

/// Reproduces: the clean-up of an attempt that lost deletes the winner's keys.
#[test]
fn the_clean_up_of_an_attempt_at_five_servers_spares_the_holder() {
    the_clean_up_spares_the_holder(&Nodes::start(5).0.iter().collect::<Vec<_>>());
}

/// Reproduces: one server behind a dead network delays each acquisition and release. Here it
/// would for an hour, if a call waited for it.
#[test]
fn no_call_waits_for_a_silent_server() {
    let (nodes, key) = (Nodes::start(5), unique_key("voting"));
    let proxies = nodes.proxies();
    let lock = warm(&proxies).lock(&key).ttl(secs(360_000)).node_limit(secs(3_600));
    proxies[1].black_hole();
    lock.try_acquire().unwrap().expect("four are free").release().unwrap();
    lock.try_acquire().unwrap().expect("and free again").release().unwrap();
    proxies[1].heal();
    nodes.becomes_free(&key);
}

/// Reproduces: the time limit of an attempt is a share of the TTL, so that an attempt at a lock of
/// ten hours takes half an hour for each server that is dead.
#[test]
fn a_long_ttl_does_not_lengthen_the_wait_for_dead_servers() {
    let (nodes, key) = (Nodes::start(5), unique_key("voting"));
    let lock = nodes.client().lock(&key).ttl(secs(36_000));
    lock.acquire().unwrap().release().unwrap();
    let mut frozen: Vec<_> = nodes.0[..2].iter().map(|node| node.freeze_process()).collect();
    lock.acquire().unwrap().release().unwrap();
    frozen.push(nodes.0[2].freeze_process());
    let began = Instant::now();
    let failed = lock.try_acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    assert!(began.elapsed() < LIMIT, "a share of the TTL");
    assert_eq!(none.failed.len(), 3, "{none:?}");
    drop(frozen);
    nodes.becomes_free(&key);
}

/// Reproduces: the servers have set the key and their replies are lost: nobody owns it until the
/// TTL ends, and the next try finds its own keys in its way.
#[test]
fn an_acquisition_whose_replies_are_lost_is_undone_on_every_server() {
    let (nodes, key) = (Nodes::start(5), unique_key("voting"));
    let proxies = nodes.proxies();
    let lock = warm(&proxies).lock(&key).ttl(secs(600)).node_limit(ms(200));
    proxies.iter().for_each(|proxy| proxy.drop_next_replies(1));
    let failed = lock.try_acquire();
    let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
    assert_eq!((none.granted, none.failed.len()), (0, 5), "{none:?}");
    assert!(none.failed.iter().all(|error| error.kind() == NodeErrorKind::TimedOut), "{none:?}");
    nodes.becomes_free(&key);
    let guard = lock.acquire_within(LIMIT).unwrap();
    nodes.until_had_by(&guard, 5);
    guard.release().unwrap();
}

/// Reproduces: what is left of the lease is counted from the answers, or from the first of many
/// attempts.
#[test]
fn validity_counts_from_before_the_round_that_succeeded() {
    let (nodes, key) = (Nodes::start(5), unique_key("voting"));
    let proxies = nodes.proxies();
    let client = warm(&proxies);
    let lock = client.lock(&key).ttl(secs(10)).node_limit(secs(5));
    proxies.iter().for_each(|proxy| proxy.delay_replies(ms(300)));
    let guard = lock.acquire_within(LIMIT).unwrap();
    let left = guard.valid_for().unwrap();
    assert!(left <= ms(10_000 - 102 - 300), "{left:?}");
    guard.release().unwrap();
    proxies.iter().for_each(Proxy::heal);
    nodes.becomes_free(&key);
    // Waited for far longer than a TTL, and yet as good as new.
    let holder = nodes.client().lock(&key).acquire().unwrap();
    let lock = client.lock(&key).ttl(ms(800));
    let waiter = thread::spawn(move || lock.acquire_within(secs(30)));
    thread::sleep(ms(1_200));
    holder.release().unwrap();
    let guard = waiter.join().unwrap().unwrap();
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

/// Reproduces: one of three is down, and every call fails or waits; whatever it is that is wrong.
#[test]
fn one_failed_server_of_three_changes_nothing_and_two_are_reported() {
    let nodes = Nodes::start(3);
    let hole = Proxy::to(&nodes.0[2]);
    hole.black_hole();
    let refuses = Proxy::to(&nodes.0[2]);
    refuses.refuse();
    let nowhere = "redis://nowhere.invalid:6379?durable=yes".to_owned();
    let up = nodes.urls();
    let up: Vec<_> = up.split(',').collect();
    let bad = [behind([&refuses]), behind([&hole]), nowhere];
    for (index, one) in bad.iter().enumerate() {
        let key = unique_key("voting");
        let lock = |urls: [&str; 3]| {
            let client = Client::connect(&urls.join(",")).unwrap();
            client.lock(&key).ttl(secs(600)).max_ttl(secs(900)).node_limit(ms(500))
        };
        let lock_of_two = lock([up[0], one, up[1]]);
        for _ in 0..2 {
            let guard = lock_of_two.try_acquire().unwrap().expect("nobody holds it");
            guard.extend(secs(900)).unwrap();
            guard.release().unwrap();
        }
        let failed = lock([&bad[(index + 1) % 3], up[0], one]).try_acquire();
        let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
        // On a busy machine the third may answer too late, too.
        assert_eq!((none.needed, none.granted + none.failed.len()), (2, 3), "{none:?}");
    }
}

/// Reproduces: all have granted it, and too late; that is an error, whose clean-up is forgotten.
#[test]
fn a_lock_granted_by_all_after_its_end_is_an_error_and_leaves_no_key() {
    let (nodes, key) = (Nodes::start(3), unique_key("voting"));
    let proxies = nodes.proxies();
    let client = warm(&proxies);
    let lock = client.lock(&key).ttl(secs(1)).renewal(Renewal::Manual).node_limit(secs(30));
    nodes.grant_too_late(&proxies, &lock, &key, ms(1_500));
    lock.ttl(secs(600)).acquire_within(LIMIT).unwrap().release().unwrap();
}
