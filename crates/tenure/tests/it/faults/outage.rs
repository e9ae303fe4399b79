//! Test 21: the servers are gone for good. The loss comes from the local clock, and in time.

use std::{thread, time::Instant};

use tenure::{LossReason, Renewal};
use tenure_testkit::{Proxy, unique_key};

use super::{connect, eventually_free, hold, ms, shared, ttl_left};

/// The margin of `lost()` is 200 ms then: what a busy machine may be late.
const TTL: std::time::Duration = std::time::Duration::from_secs(10);

/// Three outages, so that they are waited for at the same time:
///
/// - nothing is answered, and nothing arrives: the key ends, and its holder is told before;
/// - renewals arrive and their answers do not: the holder cannot know, so its deadline stands;
/// - connections are refused: the errors come at once, and change nothing.
#[test]
fn t21_in_an_outage_the_loss_is_told_before_the_key_can_end() {
    let refuse = |proxy: &Proxy| {
        proxy.refuse();
        proxy.cut();
    };
    thread::scope(|scope| {
        scope.spawn(|| told_in_time("black hole", Proxy::black_hole));
        scope.spawn(|| told_in_time("no replies", Proxy::drop_replies));
        scope.spawn(|| told_in_time("refused", refuse));
    });
}

fn told_in_time(name: &str, outage: impl FnOnce(&Proxy)) {
    let proxy = Proxy::to(shared());
    let key = unique_key("outage");
    let client = connect(&proxy.url());
    let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
    // Not at a renewal's time: its answer would still be on the way.
    hold(ms(100));
    outage(&proxy);
    let deadline = Instant::now() + guard.valid_for().expect("just acquired");
    let (told, reason, left) = thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let reason = guard.lost();
            (Instant::now(), reason, ttl_left(shared(), &key))
        });
        // Whoever asks never hears that it is held after the deadline, whatever timers do.
        while !waiter.is_finished() {
            let before = Instant::now();
            let held = guard.ensure_held().is_ok() || guard.valid_for().is_some();
            assert!(!held || before < deadline, "{name}: believed after the deadline");
            hold(ms(1));
        }
        waiter.join().unwrap()
    });
    assert_eq!(reason, LossReason::Expired);
    assert!(told <= deadline, "{name}: told {:?} after the deadline", told - deadline);
    assert!(left > 0, "{name}: told when the key had ended");
    assert_eq!(guard.valid_for(), None);
    proxy.heal();
    // What was lost stays lost, whatever the server says later.
    assert_eq!(guard.ensure_held(), Err(LossReason::Expired));
    drop(guard);
    eventually_free(shared(), &key);
}

/// However long an answer takes, the holder never believes longer than the server does.
#[test]
fn t21_validity_counts_from_before_the_request() {
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
