//! What a node is ineligible for, and for how long.

use std::{cell::RefCell, sync::Arc, time::Duration};

use tenure_core::{Closure, MarkerCause, Op};

use super::*;
use crate::{
    error::NodeErrorKind,
    node::{PendingReply, QueueWaiter, RetryContext, ServerInstance},
};

/// A node that knows its run, and is asked for nothing.
#[derive(Debug)]
struct Known {
    name: Arc<str>,
    instance: RefCell<Option<Rc<ServerInstance>>>,
}

impl Node for Known {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn call(&self, _: Op, _: Duration) -> PendingReply {
        unreachable!("nothing is asked of it")
    }

    fn call_waiting(
        &self,
        _: Op,
        _: &Rc<QueueWaiter>,
        _: RetryContext,
        _: Duration,
    ) -> PendingReply {
        unreachable!("nobody waits for it")
    }

    fn notifies_waiters(&self) -> bool {
        false
    }

    fn instance(&self) -> Option<Rc<ServerInstance>> {
        self.instance.borrow().clone()
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn old_connections_are_closed(&self) -> bool {
        true
    }
}

/// Nodes `a`, `b` and so on, and what is known of them.
fn nodes(count: u8, is_durable: bool) -> (Vec<Rc<Known>>, Vec<VoterRecord>) {
    let name = |index| char::from(b'a' + index).to_string().into();
    let known = |index| Rc::new(Known { name: name(index), instance: RefCell::default() });
    let nodes: Vec<_> = (0..count).map(known).collect();
    let record =
        |node: &Rc<Known>| VoterRecord::new(Rc::clone(node) as Rc<dyn Node>, 0, is_durable);
    let records = nodes.iter().map(record).collect();
    (nodes, records)
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

fn runs(node: &Known, id: &str, is_later: bool) {
    let id = Some(id.into()).filter(|_| !id.is_empty());
    node.instance.replace(Some(Rc::new(ServerInstance { id, is_later })));
}

/// Why the record is ineligible at that time for a lock of at most so many seconds.
fn reason(record: &mut VoterRecord, now: u64, longest: u64) -> Option<NodeErrorKind> {
    let longest = Ttl::new(Duration::from_secs(longest)).unwrap();
    record.judge(at(now), longest).err().map(|error| error.kind())
}

const SAME: Option<NodeErrorKind> = Some(NodeErrorKind::SameServer);

fn closed(cause: MarkerCause) -> Eligibility {
    Eligibility::Closed(Closure::Forgetful(cause, Duration::from_millis(24_300)))
}

#[test]
fn the_error_says_why_and_until_when() {
    let longest = Ttl::new(Duration::from_secs(30)).unwrap();
    for (cause, is_durable, words, hint) in [
        (MarkerCause::New, false, "it has no marker yet: it is new, or it was", "`tenure init`"),
        (MarkerCause::New, true, "it has no marker yet: it is new, or it was", "`tenure init`"),
        (MarkerCause::Changed, false, "it restarted, or was a replica, since", "`?durable=yes`"),
        (MarkerCause::Changed, true, "it restarted, or was a replica, since", ""),
    ] {
        let (_, mut records) = nodes(1, is_durable);
        let error = records[0].marked(longest, closed(cause)).unwrap_err();
        let why = std::error::Error::source(&error).unwrap().to_string();
        assert!(why.starts_with(words) && why.contains(hint), "{why}");
        assert!(why.contains("; it votes in 24.3 s"), "{why}");
        assert_eq!(error.votes_in(), Some(Duration::from_millis(24_300)));
        assert_eq!(error.kind(), NodeErrorKind::Restarted);
        assert!(error.is_retryable() && error.may_be_applied() && error.node() == "a");
        assert!(records[0].marked(longest, Eligibility::Eligible).is_ok());
    }
}

#[test]
fn a_server_that_cannot_be_judged_never_votes_by_itself() {
    let (_, mut records) = nodes(1, false);
    let longest = Ttl::new(Duration::from_secs(30)).unwrap();
    for (closure, kind) in [
        (Closure::Hidden, NodeErrorKind::NoPermission),
        (Closure::Unusable, NodeErrorKind::MarkerUnusable),
    ] {
        let error = records[0].marked(longest, Eligibility::Closed(closure)).unwrap_err();
        assert_eq!((error.kind(), error.votes_in()), (kind, None));
        assert!(!error.is_retryable() && error.may_be_applied());
    }
}

#[test]
fn of_two_addresses_of_one_server_the_first_counts() {
    let (nodes, mut records) = nodes(3, true);
    for (node, id) in nodes.iter().zip(["one", "two", "one"]) {
        runs(node, id, false);
    }
    meet(&mut records);
    let counted = |records: &[VoterRecord]| {
        records.iter().map(|record| record.is_counted().is_ok()).collect::<Vec<_>>()
    };
    assert_eq!(counted(&records), [true, true, false]);
    assert_eq!(reason(&mut records[2], 0, 10), SAME);
    // Now it is a server of its own.
    runs(&nodes[2], "three", true);
    meet(&mut records);
    assert_eq!(counted(&records), [true, true, true]);
}

/// It may have voted already, in an attempt that goes on.
#[test]
fn of_two_addresses_the_one_known_first_counts() {
    let (nodes, mut records) = nodes(2, true);
    runs(&nodes[1], "one", false);
    meet(&mut records);
    runs(&nodes[0], "one", false);
    meet(&mut records);
    assert_eq!(reason(&mut records[0], 0, 10), SAME);
    assert_eq!(reason(&mut records[1], 0, 10), None);
    // The other address leads elsewhere now.
    runs(&nodes[1], "two", true);
    meet(&mut records);
    meet(&mut records);
    assert_eq!(reason(&mut records[0], 0, 10), None);
}

#[test]
fn servers_that_hide_their_run_ids_count_as_different() {
    let (nodes, mut records) = nodes(2, false);
    nodes.iter().for_each(|node| runs(node, "", false));
    meet(&mut records);
    assert!(records.iter().all(|record| record.is_counted().is_ok()));
}

#[test]
fn a_server_whose_clock_stepped_is_ineligible_even_with_its_keys() {
    let (nodes, mut records) = nodes(1, true);
    runs(&nodes[0], "one", false);
    meet(&mut records);
    records[0].clock.observe(at(0), at(0), 50_000_000);
    records[0].clock.observe(at(1_000), at(1_000), 91_000_000);
    assert_eq!(reason(&mut records[0], 11_101, 10), Some(NodeErrorKind::ClockStepped));
    assert_eq!(reason(&mut records[0], 11_102, 10), None);
}

/// An address that leads to another host now: that one's clock was not stepped.
#[test]
fn the_clock_of_another_server_instance_is_not_compared() {
    for (is_another, ineligible) in [(false, Some(NodeErrorKind::ClockStepped)), (true, None)] {
        let (nodes, mut records) = nodes(1, true);
        runs(&nodes[0], "one", false);
        meet(&mut records);
        records[0].clock.observe(at(0), at(0), 50_000_000);
        if is_another {
            runs(&nodes[0], "two", true);
        }
        meet(&mut records);
        records[0].clock.observe(at(1_000), at(1_000), 91_000_000);
        assert_eq!(reason(&mut records[0], 1_000, 10), ineligible);
    }
}

#[test]
fn one_wrong_clock_of_three_changes_no_proposal() {
    for wrong_us in [0, 3_600_000_000] {
        let (nodes, _) = nodes(3, false);
        let voters = Voters::new(nodes.into_iter().map(|node| (node as Rc<dyn Node>, 0, false)));
        let clocks = [50_000, wrong_us, 51_000];
        for (record, wall_us) in voters.records.borrow_mut().iter_mut().zip(clocks) {
            record.clock.observe(at(0), at(0), wall_us);
        }
        let ahead = voters.ahead_us().unwrap();
        assert!((50_000..=51_000).contains(&ahead), "{ahead}");
    }
}
