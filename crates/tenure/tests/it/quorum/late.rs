//! What a server says after the others have decided.

use std::{thread, time::Duration};

use rustix::process::Signal;
use tenure::{
    LossReason, RevalidateError,
    blocking::{Client, LockGuard},
};
use tenure_testkit::{Gated, Proxy, eventually, unique_key};

use super::{Nodes, all_catch_up};
use crate::{
    LIMIT, ms,
    program::{self, Program},
    secs,
    servers::{behind, exists, scripts},
};

/// The third votes so late, the first loses its key at once, and a renewal follows. What becomes of
/// the lease.
fn first_loses_it_after_a_vote(after: Duration, limit: Duration) -> Option<LossReason> {
    let (nodes, key) = (Nodes::start(3), unique_key("late-vote"));
    let proxies = nodes.proxies();
    let client = Client::connect(&behind(&proxies)).unwrap();
    let lock = client.lock(&key).ttl(secs(15)).node_limit(limit);
    all_catch_up(&lock);
    proxies[2].delay_replies(after);
    let guard = lock.acquire().unwrap();
    // Behind the vote, over the same connection.
    all_catch_up(&lock);
    nodes.until_had_by(&guard, 3);
    assert_eq!(nodes.0[0].cmd(&["DEL", &key]).int(), 1);
    nodes.until_had_by(&guard, 2);
    // Two renewals, the first of which gives the first its key again.
    thread::sleep(secs(11));
    guard.ensure_held().err().map(|loss| loss.reason)
}

/// The others may have lost their keys in between, and another held the lock.
#[test]
fn a_vote_after_its_time_limit_counts_only_from_then_on() {
    let lost = first_loses_it_after_a_vote(ms(600), ms(100));
    assert_eq!(lost, Some(LossReason::Gone));
}

#[test]
fn a_vote_within_its_time_limit_counts_from_the_grant_on() {
    assert_eq!(first_loses_it_after_a_vote(ms(600), LIMIT), None);
}

/// A majority had the key when it was asked, not when it answered: the third had it only then.
#[test]
fn a_key_set_between_a_proof_and_its_reply_does_not_count_yet() {
    thread::scope(|scope| {
        scope.spawn(|| third_comes_during(|guard| guard.revalidate().unwrap()));
        scope.spawn(|| third_comes_during(|guard| guard.extend(LONG).unwrap()));
    });
}

/// The client gets to know of the third's key while it waits for the first to answer this.
fn third_comes_during(ask: impl Fn(&LockGuard) + Sync) {
    let (nodes, key) = (Nodes::start(3), unique_key("between"));
    let proxies = nodes.proxies();
    let client = Client::connect(&behind(&proxies)).unwrap();
    let lock = client.lock(&key).ttl(LONG).node_limit(secs(1));
    all_catch_up(&lock);
    proxies[2].gate_replies(0, Gated::Held);
    let guard = lock.acquire_within(LIMIT).unwrap();
    // From now on its vote is too late.
    thread::sleep(secs(1));
    proxies[0].gate_replies(0, Gated::Held);
    thread::scope(|scope| {
        scope.spawn(|| ask(&guard));
        eventually(LIMIT, "the first has answered", || proxies[0].gate_was_met());
        proxies[2].heal();
        // The second and the third answer, the third behind all that it was asked before.
        lock.inspect().unwrap();
        proxies[0].heal();
    });
    assert_eq!(nodes.0[0].cmd(&["DEL", &key]).int(), 1);
    let proved = guard.revalidate();
    let Err(RevalidateError::NotHeld(loss)) = proved else { panic!("{proved:?}") };
    assert_eq!(loss.reason, LossReason::Gone);
}

/// The holder is stopped while the third's vote arrives, and runs on after the time limit: it finds
/// the vote and the end of the limit at the same moment. Then the first has lost its key.
#[test]
fn a_late_vote_read_by_a_stopped_holder_counts_only_from_then_on() {
    let (nodes, key) = (Nodes::start(3), unique_key("stopped-vote"));
    let proxies = nodes.proxies();
    let settings = [("SERVERS", &*behind(&proxies)), ("KEY", &key)];
    let mut holder = Program::start("hold and prove at once", &settings);
    assert_eq!(holder.hear(), "ready");
    proxies[2].gate_replies(0, Gated::Held);
    holder.tell("acquire");
    assert_eq!(holder.hear(), "held");
    eventually(LIMIT, "the third has voted", || proxies[2].gate_was_met());
    holder.stop();
    proxies[2].heal();
    // The pause itself is what is tested: it outlasts the time limit.
    thread::sleep(STOPPED_LIMIT);
    assert_eq!(nodes.0[0].cmd(&["DEL", &key]).int(), 1);
    // The line is there before it runs on.
    holder.tell("prove");
    holder.signal(Signal::CONT);
    assert_eq!(holder.hear(), format!("{:?}", Some(LossReason::Gone)));
    holder.tell("end");
    holder.end_well();
    nodes.becomes_free(&key);
}

/// The holder: is stopped when it holds the lock, and then asks whether it held it all the time.
pub(super) fn holder() {
    let client = Client::connect(&program::setting("SERVERS")).unwrap();
    let lock = client.lock(program::setting("KEY")).ttl(LONG).node_limit(STOPPED_LIMIT);
    all_catch_up(&lock);
    program::say("ready");
    program::heed();
    let guard = lock.acquire_within(LIMIT).unwrap();
    program::say("held");
    // Stopped in here.
    program::heed();
    let lost = loop {
        match guard.revalidate() {
            Ok(()) => break None,
            Err(RevalidateError::NotHeld(loss)) => break Some(loss.reason),
            // Nothing was proved, and nothing was lost.
            Err(_) => {}
        }
    };
    program::say(&format!("{lost:?}"));
    program::heed();
}

/// No renewal is due during a test.
const LONG: Duration = secs(120);

/// Long enough to stop the holder in.
const STOPPED_LIMIT: Duration = secs(2);

/// The connection ends with the third's answer, before the others have decided, or after that.
#[test]
fn a_release_leaves_a_tombstone_where_a_request_may_still_arrive() {
    for later in [0, 2] {
        let (nodes, key) = (Nodes::start(3), unique_key("may-arrive"));
        let proxies = nodes.proxies();
        let client = Client::connect(&behind(&proxies)).unwrap();
        let lock = client.lock(&key).ttl(LONG).node_limit(LIMIT);
        all_catch_up(&lock);
        proxies[later].delay_replies(ms(300));
        proxies[2].gate_replies(0, Gated::Cut);
        let guard = lock.acquire_within(LIMIT).unwrap();
        eventually(LIMIT, "the third's answer is lost", || proxies[2].gate_was_met());
        proxies.iter().for_each(Proxy::heal);
        // Over the next connection.
        all_catch_up(&lock);
        guard.release().unwrap();
        nodes.becomes_free(&key);
        let queue = format!("{{{key}}}:tenure.queue");
        assert!(exists(&nodes.0[2], &queue));
    }
}

/// The request for the key and the release behind it are on their way when the connection ends, and
/// the request arrives after the release was repeated over the next one.
#[test]
fn a_request_that_arrives_after_the_release_is_undone() {
    let (nodes, key) = (Nodes::start(3), unique_key("late"));
    let third = &nodes.0[2];
    assert!(third.cmd(&["ACL", "SETUSER", "default", "-client|kill"]).is_ok());
    let proxies = nodes.proxies();
    let client = Client::connect(&behind(&proxies)).unwrap();
    let lock = client.lock(&key).ttl(secs(600));
    all_catch_up(&lock);
    proxies[2].delay_requests(LIMIT * 10);
    let guard = lock.acquire().unwrap();
    eventually(LIMIT, "its request is on its way", || proxies[2].requests_on_the_way() == 1);
    guard.release().unwrap();
    eventually(LIMIT, "and its release", || proxies[2].requests_on_the_way() == 2);
    let before = scripts(third);
    proxies[2].half_open();
    proxies[2].delay_requests(Duration::ZERO);
    eventually(LIMIT, "the release is repeated", || scripts(third) > before);
    all_catch_up(&lock);
    let before = scripts(third);
    proxies[2].deliver_late();
    eventually(LIMIT, "the request arrives", || scripts(third) > before);
    eventually(LIMIT, "no key is left", || !exists(third, &key));
    nodes.becomes_free(&key);
}
