//! The servers are gone and stay gone. The loss comes from the local clock, in time.

use std::{thread, time::Instant};

use tenure::{LossReason, Renewal};
use tenure_testkit::{Proxy, Server, unique_key};

use super::{LIMIT, connect, eventually_free, hold, ms, shared, ttl_left};
use crate::servers;

/// The margin of `lost()` is 200 ms then: what a busy machine may be late.
const TTL: std::time::Duration = std::time::Duration::from_secs(10);

/// Three outages, so that they are waited for at the same time:
///
/// - nothing is answered, and nothing arrives: the holder is notified before the key ends;
/// - renewals arrive and their answers do not: the holder cannot know, so its deadline stands;
/// - connections are refused: the errors come at once, and change nothing.
#[test]
fn in_an_outage_the_loss_is_reported_before_the_key_can_expire() {
    told_in_every_outage(&[shared()]);
}

pub(crate) fn told_in_every_outage(nodes: &[&Server]) {
    let refuse = |proxy: &Proxy| {
        proxy.refuse();
        proxy.cut();
    };
    thread::scope(|scope| {
        scope.spawn(|| told_in_time(nodes, "black hole", Proxy::black_hole));
        scope.spawn(|| told_in_time(nodes, "no replies", Proxy::drop_replies));
        scope.spawn(|| told_in_time(nodes, "refused", refuse));
    });
}

fn told_in_time(nodes: &[&Server], name: &str, outage: impl Fn(&Proxy)) {
    let proxies: Vec<_> = nodes.iter().map(|node| Proxy::to(node)).collect();
    let key = unique_key("outage");
    let client = connect(&servers::behind(&proxies));
    let guard = client.lock(&key).ttl(TTL).acquire_within(LIMIT).unwrap();
    // Not at a renewal's time: its answer would still be on the way.
    hold(ms(100));
    proxies.iter().for_each(outage);
    let deadline = Instant::now() + guard.valid_for().expect("just acquired");
    let (told, reason, left) = thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let reason = guard.lost();
            let left = nodes.iter().map(|node| ttl_left(node, &key));
            (Instant::now(), reason, left.min().expect("a node"))
        });
        // No call says that it is held after the deadline, whatever timers do.
        while !waiter.is_finished() {
            let before = Instant::now();
            let held = guard.ensure_held().is_ok() || guard.valid_for().is_some();
            assert!(!held || before < deadline, "{name}: believed after the deadline");
            hold(ms(1));
        }
        waiter.join().unwrap()
    });
    assert_eq!(reason, LossReason::Expired);
    assert!(told <= deadline, "{name}: reported {:?} after the deadline", told - deadline);
    assert!(left > 0, "{name}: reported when the key had ended");
    assert_eq!(guard.valid_for(), None);
    proxies.iter().for_each(Proxy::heal);
    // What was lost stays lost, whatever the server says later.
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Expired));
    drop(guard);
    nodes.iter().for_each(|node| eventually_free(node, &key));
}

/// However long an answer takes, the holder never believes longer than the server does.
#[test]
fn validity_counts_from_before_the_request_is_queued() {
    let proxy = Proxy::to(shared());
    let key = unique_key("slow-answer");
    let client = connect(&proxy.url());
    client.lock(&key).inspect().unwrap();
    proxy.delay_replies(ms(700));
    let guard = client.lock(&key).ttl(TTL).renewal(Renewal::Manual).acquire().unwrap();
    for _ in 0..2 {
        let before = Instant::now();
        let believed = guard.valid_for().expect("held");
        let left = u64::try_from(ttl_left(shared(), &key)).expect("a key with a TTL");
        assert!(believed <= ms(left) + before.elapsed(), "{believed:?} of {left} ms");
        guard.extend(TTL).unwrap();
    }
    guard.release().unwrap();
}
