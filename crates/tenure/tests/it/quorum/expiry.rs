//! The keys that keep the last numbers end, and the numbers go on.

use std::time::Duration;

use tenure::{FencingToken, blocking::Client};
use tenure_testkit::{Clock, Server, ServerKind, Value, eventually, scale, unique_key};

use super::{Nodes, all_catch_up};
use crate::{LIMIT, secs};

const TTL: Duration = secs(3);

/// Five servers that have this clock.
fn five(clock: &Clock) -> Nodes {
    let kinds = ServerKind::ALL.into_iter().cycle().take(5);
    Nodes::of(kinds.map(|kind| Server::builder(kind).clock(clock.clone()).start()))
}

fn keys(node: &Server) -> i64 {
    // The marker is the server's, and no lock's.
    node.cmd(&["DBSIZE"]).int() - 1
}

fn number(client: &Client, key: &str) -> FencingToken {
    let lock = client.lock(key).ttl(TTL).max_ttl(TTL);
    let guard = lock.acquire_within(LIMIT).unwrap();
    let number = guard.fencing_token();
    guard.release().unwrap();
    number
}

/// A day after a lock was used the last time nothing of it is on any node.
#[test]
fn many_names_leave_nothing_and_later_numbers_are_larger() {
    let (clock, names) = (Clock::new(), scale(100, 20_000));
    let (nodes, key) = (five(&clock), unique_key("names"));
    let client = nodes.client();
    let name = |index| format!("{key}-{index}");
    let before: Vec<_> = (0..names).map(|index| number(&client, &name(index))).collect();
    all_catch_up(&client.lock(&key));
    for node in &nodes.0 {
        assert_eq!(keys(node), i64::try_from(names).unwrap(), "the numbers alone are left");
        let longest = i64::try_from((DAY + TTL).as_millis()).unwrap();
        let mut raw = node.raw();
        let all = raw.cmd(&["KEYS", "*"]);
        let is_of_lock = |key: &&Value| key.text() != Some("tenure:marker");
        for fence in all.array().iter().filter(is_of_lock) {
            let left = raw.cmd(&[b"PTTL", fence.bytes().unwrap()]).int();
            assert!((1..=longest).contains(&left), "{fence:?} has {left} ms left");
        }
    }
    clock.advance(DAY + TTL + secs(1));
    for node in &nodes.0 {
        eventually(LIMIT * 3, "nothing is left", || keys(node) == 0);
    }
    // A client that knows no number yet, and one that knew the servers' clock of yesterday: to it
    // they all jumped, so it waits until what they may have forgotten is over.
    for client in [&nodes.client(), &client] {
        for (index, before) in before.iter().enumerate().take(10) {
            let after = number(client, &name(index));
            assert!(after > *before, "{after} after {before}");
        }
    }
}

/// A client learns the servers' clock only from a reply, and this host's may be wrong.
#[test]
fn a_host_clock_days_behind_makes_no_number_smaller() {
    let (clock, key) = (Clock::new(), unique_key("behind"));
    clock.advance(3 * DAY);
    let nodes = five(&clock);
    let client = nodes.client();
    let first = number(&client, &key);
    let before = number(&client, &key);
    assert!(before > first);
    clock.advance(DAY + TTL + secs(1));
    let after = number(&nodes.client(), &key);
    assert!(after > before, "{after} after {before}");
}

const DAY: Duration = secs(24 * 60 * 60);
