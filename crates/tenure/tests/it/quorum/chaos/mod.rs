//! Everything that can go wrong among five nodes and their clients, at once and for long.
//!
//! The nodes are real, of all kinds, and keep what they have said; at any moment at most two of
//! them are in trouble. Processes hold, wait and give up, while they are killed, stopped, slowed
//! down and cut off from a majority, each by a network of its own. What they believed is compared
//! afterwards. What happens is the same in each run of a seed, though not to the microsecond.

mod arena;
mod client;
mod plan;

use std::{thread, time::Duration};

use tenure::blocking::Client;
use tenure_testkit::{Server, TempDir, scale};

pub(super) use self::client::come_and_go;
use self::{arena::Arena, plan::Plan};
use crate::{
    LIMIT,
    chaos::{self, History},
    queue::line::figure,
    secs, servers,
};

const NODES: usize = 5;
const PROCESSES: usize = 4;
/// Those of one process.
const VISITORS: usize = 4;
const LOCKS: [&str; 2] = ["one", "two"];
const TTL: Duration = secs(2);

/// Longer than the TTL: a process that holds a lock when it begins may not believe so when it ends.
const MAX_TROUBLE: Duration = secs(4);

/// An acquired lock has so much validity left, or the acquisition fails.
const MIN_VALIDITY: Duration = secs(1);

/// A lock stands free no longer than this, while there are some who want it. Its holder may have
/// died, just after a renewal; its key, and that of a dead attempt, may come to a node after its
/// trouble; each ends with its TTL.
const MAX_PAUSE: Duration = TTL.saturating_mul(2).saturating_add(MAX_TROUBLE);

/// Nobody waits longer than if all others at its lock came first, each after such a pause.
const MAX_WAIT: Duration = MAX_PAUSE.saturating_mul(OTHERS);

/// Of all visitors of all processes half are at each lock.
const OTHERS: u32 = 7;

#[test]
fn with_random_faults_at_two_of_five_nodes_holds_never_overlap() {
    let (seed, directory) = (chaos::seed(), TempDir::new());
    let log = directory.path().join("log");
    let mut arena = Arena::open(seed, &log);
    arena.rage(Plan::new(seed, secs(scale(20, 1_800) as u64)));
    arena.close();

    let history = History::read(&log);
    let holds = history.holds();
    let what = format!("{holds} holds, {} given up, {:?}", history.given_up(), arena.counts);
    figure(&format!("chaos: {what}; longest wait"), history.longest_wait(), MAX_WAIT);
    figure("chaos: longest pause of a lock", history.longest_pause(), MAX_PAUSE);
    history.agrees();
    // The rest is for a machine that is too busy to report it at once.
    history.nobody_came_too_late(MIN_VALIDITY / 2);
    assert!(holds > 20, "too few holds");

    // The keys of killed processes have ended by then.
    thread::sleep(TTL * 2);
    arena.nodes.iter().for_each(only_numbers_are_left);
    let client = Client::connect(&servers::quorum(&arena.nodes)).unwrap();
    for lock in LOCKS {
        let guard = client.lock(lock).acquire_within(LIMIT).unwrap();
        assert!(guard.fencing_token().get() > history.last_number(lock), "{lock}");
        guard.release().unwrap();
    }
}

/// The last number of each lock, and marks of what was given up; each ends. And the one marker of
/// the server, which does not.
fn only_numbers_are_left(node: &Server) {
    for key in node.cmd(&["KEYS", "*"]).array() {
        let key = key.text().unwrap();
        if key == "tenure:marker" {
            continue;
        }
        assert!(node.cmd(&["PTTL", key]).int() > 0, "{key} has no end");
        if key.ends_with(":tenure.queue") {
            let marks = node.cmd(&["ZRANGE", key, "0", "-1"]);
            let is_mark = |mark: &&str| mark.starts_with('!');
            assert!(marks.array().iter().filter_map(|mark| mark.text()).all(|mark| is_mark(&mark)));
        } else {
            assert!(key.ends_with(":tenure.fence"), "{key} is left");
        }
    }
}
