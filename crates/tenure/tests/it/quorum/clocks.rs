//! Servers whose wall clocks jump: TTLs run on them, so a lock may end there long before its time,
//! or long after.

use tenure::{
    AcquireError, FenceGate, NodeErrorKind,
    blocking::{Client, LockGuard},
};
use tenure_testkit::{Server, ServerKind, scale, unique_key};

use super::{Nodes, name};
use crate::{LIMIT, secs};

/// Longer than any round takes, and shorter than the clocks jump.
const HELD: std::time::Duration = secs(30);

const LEAP_MS: i64 = 40_000;

/// Five servers with clocks of their own.
fn clocks() -> Nodes {
    let kinds = ServerKind::ALL.into_iter().cycle().take(5);
    Nodes::of(kinds.map(|kind| Server::builder(kind).tcp().shim().start()))
}

/// Has all nodes asked, and all of them answer.
fn learn_clocks(client: &Client) {
    let reports = client.lock("any").nodes().unwrap();
    assert!(reports.iter().all(|report| report.trouble.is_none()), "{reports:?}");
}

/// Takes the lock with a new client, which knows no clock; all its requests are carried out.
fn holder(nodes: &Nodes, key: &str) -> LockGuard {
    let client = nodes.client();
    let guard = client.lock(key).ttl(HELD).acquire_within(LIMIT).unwrap();
    learn_clocks(&client);
    guard
}

/// A majority still has the key, so neither a client that knows the clocks nor a new one gets in.
#[test]
fn a_clock_step_on_one_of_five_servers_costs_nothing() {
    let nodes = clocks();
    for round in 0..scale(5, 250) {
        let key = unique_key("leap");
        let knowing = nodes.client();
        learn_clocks(&knowing);
        let guard = holder(&nodes, &key);
        nodes.0[round % 5].clock().step_ms(LEAP_MS);
        for client in [knowing, nodes.client()] {
            let lock = client.lock(&key).ttl(HELD).node_limit(LIMIT);
            assert!(lock.try_acquire().unwrap().is_none());
        }
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
        guard.release().unwrap();
        nodes.becomes_free(&key);
    }
}

/// One holds the lock on the first three of five alone, and the clock of one of them leaps. What
/// another client gets, which knew the clocks before or did not.
fn after_a_leap(knew_it: bool) -> Result<bool, (String, NodeErrorKind)> {
    let (nodes, key) = (clocks(), unique_key("bare"));
    let urls = nodes.urls();
    let cut_off = urls.split(',').take(3).chain(["redis://127.0.0.1:1", "redis://127.0.0.1:2"]);
    let few = Client::connect(&cut_off.collect::<Vec<_>>().join(",")).unwrap();
    let other = nodes.client();
    if knew_it {
        learn_clocks(&other);
    }
    let guard = few.lock(&key).ttl(HELD).acquire_within(LIMIT).unwrap();
    nodes.0[1].clock().step_ms(LEAP_MS);
    let had = other.lock(&key).ttl(HELD).node_limit(LIMIT).try_acquire();
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    match had {
        Ok(had) => Ok(had.is_some()),
        Err(AcquireError::NoQuorum(none)) => {
            assert_eq!((none.granted, none.failed.len()), (2, 1), "{none:?}");
            assert_eq!(none.failed[0].node(), name(&nodes.0[1]));
            Err((
                std::error::Error::source(&none.failed[0]).unwrap().to_string(),
                none.failed[0].kind(),
            ))
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn a_server_whose_clock_stepped_has_no_vote() {
    let (why, kind) = after_a_leap(true).unwrap_err();
    assert_eq!(kind, NodeErrorKind::ClockStepped);
    // By 40 s, less what the looks leave open.
    assert!(why.starts_with("by 40.0 s forward") || why.starts_with("by 39."), "{why}");
    // A new client cannot know, which is why numbers go to the resource; and the test could fail.
    assert_eq!(after_a_leap(false), Ok(true));
}

/// Leases overlap now, which nobody can prevent; numbers do not, and a resource that checks them
/// stays whole.
#[test]
fn clock_steps_on_a_majority_leave_numbers_unique() {
    let (nodes, key, gate) = (clocks(), unique_key("leaps"), FenceGate::new());
    let mut holders: Vec<LockGuard> = Vec::new();
    for round in 0..scale(6, 100) {
        let guard = holder(&nodes, &key);
        gate.admit(guard.fencing_token(), guard.token()).unwrap();
        for earlier in &holders {
            assert!(earlier.fencing_token() < guard.fencing_token(), "in round {round}");
            assert!(gate.admit(earlier.fencing_token(), earlier.token()).is_err());
        }
        holders.push(guard);
        (0..3).for_each(|node| nodes.0[(round + node) % 5].clock().step_ms(LEAP_MS));
    }
    let overlapping = holders.iter().filter(|holder| holder.ensure_held().is_ok()).count();
    assert!(overlapping > 1, "the clock steps had no effect");
}

#[test]
fn clocks_set_back_do_not_keep_a_released_lock() {
    let (nodes, key) = (clocks(), unique_key("back"));
    let client = nodes.client();
    learn_clocks(&client);
    let lock = client.lock(&key).ttl(HELD);
    let guard = lock.acquire_within(LIMIT).unwrap();
    let number = guard.fencing_token();
    nodes.0.iter().for_each(|node| node.clock().step_ms(-3_600_000));
    guard.extend(HELD).unwrap();
    guard.release().unwrap();
    nodes.becomes_free(&key);
    assert!(holder(&nodes, &key).fencing_token() > number);
    // Who knew the clocks does not believe one of them until every lock of before is over.
    let reports = lock.nodes().unwrap();
    for trouble in reports.iter().map(|report| report.trouble.as_ref().unwrap()) {
        assert_eq!(trouble.kind(), NodeErrorKind::ClockStepped);
        assert!(trouble.is_retryable());
    }
}
