//! What a node is doubted for, and for how long.

use std::{cell::RefCell, sync::Arc, time::Duration};

use tenure_core::Op;

use super::*;
use crate::{
    error::NodeErrorKind,
    node::{Brought, Call, Run, Waiter},
};

/// A node that knows its run, and is asked for nothing.
#[derive(Debug)]
struct Known {
    name: Arc<str>,
    run: RefCell<Option<Rc<Run>>>,
}

impl Node for Known {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn call(&self, _: Op, _: Duration) -> Call {
        unreachable!("nothing is asked of it")
    }

    fn call_waiting(&self, _: Op, _: &Rc<Waiter>, _: Brought, _: Duration) -> Call {
        unreachable!("nobody waits for it")
    }

    fn tells_waiters(&self) -> bool {
        false
    }

    fn run(&self) -> Option<Rc<Run>> {
        self.run.borrow().clone()
    }

    fn may_be_left(&self) -> bool {
        true
    }

    fn is_cut_off_from_the_past(&self) -> bool {
        true
    }
}

/// Nodes `a`, `b` and so on, and what is known of them.
fn nodes(count: u8, is_durable: bool) -> (Vec<Rc<Known>>, Vec<Record>) {
    let name = |index| char::from(b'a' + index).to_string().into();
    let known = |index| Rc::new(Known { name: name(index), run: RefCell::default() });
    let nodes: Vec<_> = (0..count).map(known).collect();
    let record = |node: &Rc<Known>| Record::new(Rc::clone(node) as Rc<dyn Node>, is_durable);
    let records = nodes.iter().map(record).collect();
    (nodes, records)
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

fn runs(node: &Known, id: &str, age: Option<u64>, seen: u64, is_later: bool) {
    let id = Some(id.into()).filter(|_| !id.is_empty());
    let age = age.map(Duration::from_secs);
    node.run.replace(Some(Rc::new(Run { id, age, seen: at(seen), is_later })));
}

/// Whether the record is doubted at that time by a lock of at most so many seconds.
fn doubt(record: &mut Record, now: u64, longest: u64) -> Option<NodeErrorKind> {
    let longest = Ttl::new(Duration::from_secs(longest)).unwrap();
    record.judge(at(now), longest).err().map(|error| error.kind())
}

const RESTARTED: Option<NodeErrorKind> = Some(NodeErrorKind::Restarted);
const SAME: Option<NodeErrorKind> = Some(NodeErrorKind::SameServer);

/// A lock of 10 s is over after 10,102 ms, drift included.
#[test]
fn a_later_run_is_doubted_from_when_it_was_seen_whatever_its_uptime() {
    let (nodes, mut records) = nodes(1, false);
    runs(&nodes[0], "one", Some(1_000), 0, false);
    meet(&mut records);
    assert_eq!(doubt(&mut records[0], 0, 10), None);
    runs(&nodes[0], "two", Some(1_000), 5_000, true);
    meet(&mut records);
    assert_eq!(doubt(&mut records[0], 5_000, 10), RESTARTED);
    assert_eq!(doubt(&mut records[0], 15_101, 10), RESTARTED);
    assert_eq!(doubt(&mut records[0], 15_102, 10), None);
    assert_eq!(doubt(&mut records[0], 15_102, 30), RESTARTED, "another lock's is longer");
}

#[test]
fn a_young_server_is_doubted_until_it_is_old_enough() {
    let (nodes, mut records) = nodes(1, false);
    runs(&nodes[0], "one", Some(4), 5_000, false);
    meet(&mut records);
    assert_eq!(doubt(&mut records[0], 11_101, 10), RESTARTED);
    assert_eq!(doubt(&mut records[0], 11_102, 10), None);
    // Where nothing at all is told, the first is trusted.
    runs(&nodes[0], "", None, 5_000, false);
    meet(&mut records);
    assert_eq!(doubt(&mut records[0], 5_000, 10), None);
}

#[test]
fn one_that_keeps_its_keys_is_not_doubted() {
    let (nodes, mut records) = nodes(1, true);
    runs(&nodes[0], "two", Some(0), 5_000, true);
    meet(&mut records);
    assert_eq!(doubt(&mut records[0], 5_000, 10), None);
}

#[test]
fn the_error_says_why_and_until_when() {
    let (nodes, mut records) = nodes(1, false);
    let longest = Ttl::new(Duration::from_secs(30)).unwrap();
    for (age, is_later, words) in [
        (Some(4), false, "it started about 6.0 s ago; it votes in 24.3 s"),
        (Some(4), true, "its restart was noticed 2.0 s ago; it votes in 28.3 s"),
        (None, true, "its restart was noticed 2.0 s ago; it votes in 28.3 s"),
    ] {
        runs(&nodes[0], "one", age, 5_000, is_later);
        meet(&mut records);
        let error = records[0].judge(at(7_000), longest).unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(why.starts_with(words) && why.contains("`?durable=yes`"), "{why}");
        assert!(error.is_retryable() && error.may_be_applied() && error.node() == "a");
    }
}

#[test]
fn of_two_addresses_of_one_server_the_first_counts() {
    let (nodes, mut records) = nodes(3, true);
    for (node, id) in nodes.iter().zip(["one", "two", "one"]) {
        runs(node, id, None, 0, false);
    }
    meet(&mut records);
    let counted = |records: &[Record]| {
        records.iter().map(|record| record.is_counted().is_ok()).collect::<Vec<_>>()
    };
    assert_eq!(counted(&records), [true, true, false]);
    assert_eq!(doubt(&mut records[2], 0, 10), SAME);
    // Now it is a server of its own.
    runs(&nodes[2], "three", None, 0, true);
    meet(&mut records);
    assert_eq!(counted(&records), [true, true, true]);
}

/// It may have voted already, in an attempt that goes on.
#[test]
fn of_two_addresses_the_one_that_was_known_before_counts() {
    let (nodes, mut records) = nodes(2, true);
    runs(&nodes[1], "one", None, 0, false);
    meet(&mut records);
    runs(&nodes[0], "one", None, 0, false);
    meet(&mut records);
    assert_eq!(doubt(&mut records[0], 0, 10), SAME);
    assert_eq!(doubt(&mut records[1], 0, 10), None);
    // The other address leads elsewhere now.
    runs(&nodes[1], "two", None, 0, true);
    meet(&mut records);
    meet(&mut records);
    assert_eq!(doubt(&mut records[0], 0, 10), None);
}

#[test]
fn servers_that_hide_their_runs_are_not_taken_for_one() {
    let (nodes, mut records) = nodes(2, false);
    nodes.iter().for_each(|node| runs(node, "", None, 0, false));
    meet(&mut records);
    assert!(records.iter().all(|record| record.is_counted().is_ok()));
}

#[test]
fn a_clock_that_jumped_is_doubted_although_the_keys_are_kept() {
    let (nodes, mut records) = nodes(1, true);
    runs(&nodes[0], "one", None, 0, false);
    meet(&mut records);
    records[0].clock.look(at(0), at(0), 50_000_000);
    records[0].clock.look(at(1_000), at(1_000), 91_000_000);
    assert_eq!(doubt(&mut records[0], 11_101, 10), Some(NodeErrorKind::ClockJumped));
    assert_eq!(doubt(&mut records[0], 11_102, 10), None);
}
