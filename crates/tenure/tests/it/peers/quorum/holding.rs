//! A lease over several servers that lose keys, refuse and restart.

use std::thread;

use tenure::{ExtendError, Loss, LossReason, blocking::LockGuard};
use tenure_testkit::{Server, eventually, unique_key};

use crate::{
    LIMIT, ms,
    quorum::{Nodes, until_all_vote},
    secs,
};

/// Waits until the node has been asked to renew it so many times.
fn until_renewed(node: &Server, guard: &LockGuard, times: usize) {
    let mut monitor = node.monitor();
    let token = guard.token().as_str();
    for _ in 0..times {
        monitor.lines_until(|line| line.contains(token) && !line.contains("lua]"));
    }
}

/// Reproduces: one server answers an extension by an error, and the lock is given up on all.
#[test]
fn an_extension_that_some_servers_refuse_loses_nothing() {
    let (nodes, key) = (Nodes::start(3), unique_key("holding"));
    let guard = nodes.client().lock(&key).ttl(secs(600)).max_ttl(secs(900)).acquire().unwrap();
    nodes.until_had_by(&guard, 3);
    let refuse = |node: &Server, replicas| {
        assert!(node.cmd(&["CONFIG", "SET", "min-replicas-to-write", replicas]).is_ok());
    };
    refuse(&nodes.0[2], "1");
    for _ in 0..3 {
        guard.extend(secs(900)).unwrap();
    }
    refuse(&nodes.0[1], "1");
    let unsure = guard.extend(secs(900));
    let Err(ExtendError::Unconfirmed(errors)) = unsure else { panic!("{unsure:?}") };
    assert_eq!(errors.iter().count(), 2, "{errors}");
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    nodes.until_had_by(&guard, 3);
    nodes.0[1..].iter().for_each(|node| refuse(node, "0"));
    guard.extend(secs(900)).unwrap();
    guard.release().unwrap();
    nodes.becomes_free(&key);
}

/// Reproduces: servers without a disk restart one after the other, extensions only raise TTLs, and
/// in the end a majority has no key.
#[test]
fn a_lease_outlives_servers_that_restart_empty_one_by_one() {
    let (nodes, key) = (Nodes::start(3), unique_key("holding"));
    let lock = nodes.client().lock(&key).ttl(secs(3)).max_ttl(secs(3));
    let guard = lock.acquire().unwrap();
    nodes.until_had_by(&guard, 3);
    for restarted in [2, 1, 0] {
        nodes.0[restarted].restart_empty();
        // It is given its key again, and counts as soon as nothing that it forgot can be held.
        nodes.until_had_by(&guard, 3);
        until_all_vote(&lock);
        until_renewed(&nodes.0[restarted], &guard, 2);
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    }
    guard.release().unwrap();
    nodes.becomes_free(&key);
}

/// The price of doing without, and what it is paid for: a key that is away stays away.
#[test]
fn without_repair_the_second_restart_loses_the_lease() {
    let (nodes, key) = (Nodes::start(3), unique_key("off"));
    let lock = nodes.client().lock(&key).ttl(secs(600)).max_ttl(secs(900)).repair(false);
    let guard = lock.acquire().unwrap();
    nodes.until_had_by(&guard, 3);
    nodes.0[2].restart_empty();
    guard.extend(secs(900)).unwrap();
    guard.extend(secs(900)).unwrap();
    nodes.0[1].restart_empty();
    eventually(LIMIT, "it is lost", || {
        matches!(
            guard.extend(secs(900)),
            Err(ExtendError::NotHeld(Loss { reason: LossReason::Gone, .. }))
        )
    });
    nodes.until_had_by(&guard, 1);
    assert!(guard.release().is_err());
    nodes.becomes_free(&key);
}

/// A lease that three of five have granted, while two were down; they are back, without a key.
fn held_by_three(nodes: &Nodes, key: &str, repair: bool) -> LockGuard {
    nodes.0[3..].iter().for_each(Server::kill);
    let lock = nodes.client().lock(key).ttl(secs(3)).max_ttl(secs(3)).repair(repair);
    let guard = lock.acquire_within(LIMIT).unwrap();
    nodes.0[3..].iter().for_each(Server::start_again);
    guard
}

/// Reproduces: three of five have granted it, one of the three forgets, and the three without a key
/// grant it to another.
#[test]
fn a_lease_granted_by_three_of_five_is_soon_on_all() {
    let (nodes, key) = (Nodes::start(5), unique_key("holding"));
    let guard = held_by_three(&nodes, &key, true);
    nodes.until_had_by(&guard, 5);
    // They count when nothing that they forgot can be held, and a renewal has found that.
    until_all_vote(&nodes.client().lock(&key).ttl(secs(3)).max_ttl(secs(3)));
    until_renewed(&nodes.0[4], &guard, 2);
    assert!(nodes.0[0].cmd(&["FLUSHALL"]).is_ok());
    assert!(nodes.client().lock(&key).try_acquire().unwrap().is_none());
    nodes.until_had_by(&guard, 5);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

/// The control: without repair another gets it. Its number is larger, and the first is notified.
#[test]
fn without_repair_the_loss_of_one_more_server_gives_the_lock_away() {
    let (nodes, key) = (Nodes::start(5), unique_key("off"));
    let guard = held_by_three(&nodes, &key, false);
    // Renewals find no key there.
    until_renewed(&nodes.0[4], &guard, 2);
    nodes.until_had_by(&guard, 3);
    assert!(nodes.0[0].cmd(&["FLUSHALL"]).is_ok());
    let lock = nodes.client().lock(&key).ttl(secs(3)).max_ttl(secs(3));
    let other = lock.acquire_within(LIMIT).unwrap();
    assert!(other.fencing_token() > guard.fencing_token());
    let lost = guard.lost();
    assert!(matches!(lost, LossReason::Taken { .. } | LossReason::Gone), "{lost}");
    drop(guard);
    assert_eq!(other.ensure_held().map_err(|loss| loss.reason), Ok(()));
    other.release().unwrap();
}

/// Reproduces: the keys are deleted, then extended: the extension takes the lock again as if it had
/// been held all along.
#[test]
fn an_extension_over_five_servers_never_acquires_again() {
    let nodes = Nodes::start(5);
    let client = nodes.client();
    for stolen in [false, true] {
        let key = unique_key("holding");
        let guard = client.lock(&key).ttl(secs(600)).max_ttl(secs(900)).acquire().unwrap();
        nodes.until_had_by(&guard, 5);
        let lose = |node: &Server| match stolen {
            true => assert!(node.cmd(&["SET", &key, "another's", "PX", "600000"]).is_ok()),
            false => assert_eq!(node.cmd(&["DEL", &key]).int(), 1),
        };
        nodes.0[..2].iter().for_each(lose);
        guard.extend(secs(900)).unwrap();
        if !stolen {
            nodes.until_had_by(&guard, 5);
        }
        // A third, and what was made good on the others.
        nodes.0[..3].iter().for_each(|node| {
            node.cmd(&["DEL", &key]);
            if stolen {
                lose(node);
            }
        });
        let refused = guard.extend(secs(900));
        let Err(ExtendError::NotHeld(loss)) = refused else { panic!("{refused:?}") };
        assert_eq!(matches!(loss.reason, LossReason::Taken { .. }), stolen, "{loss}");
        assert!(nodes.having(&key, guard.token().as_bytes()) <= 2, "taken again");
        drop(guard);
        for node in nodes.0.iter().filter(|_| stolen) {
            node.cmd(&["DEL", &key]);
        }
        nodes.becomes_free(&key);
    }
}

/// Reproduces: a lock got on a retry is never renewed, since the clean-up of the failed attempt
/// before it has cancelled what the renewal looks at.
#[test]
fn a_lock_on_several_servers_acquired_after_failed_attempts_is_renewed() {
    let (nodes, key) = (Nodes::start(5), unique_key("holding"));
    nodes.0[4].kill();
    let lock = nodes.client().lock(&key).ttl(ms(2_500));
    let holder = lock.acquire_within(LIMIT).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| lock.acquire_within(secs(30)));
        thread::sleep(ms(400));
        holder.release().unwrap();
        let guard = waiting.join().unwrap().unwrap();
        thread::sleep(ms(7_500));
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
        guard.release().unwrap();
    });
}
