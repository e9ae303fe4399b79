//! Expired leases, and clocks.

use std::time::Duration;

use tenure::{
    AcquireError, Loss, LossReason, NodeErrorKind, ReleaseError, Renewal, blocking::Client,
};
use tenure_testkit::{Proxy, Server, ServerKind, eventually};

use crate::{LIMIT, ms, secs, servers::exists};

/// Reproduces: a release after the end counts as a vote against, and is retried as often as an
/// acquisition: it takes seconds, then throws, or never returns.
#[test]
fn a_release_after_expiry_takes_one_round_trip() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let lock = client.lock("k").ttl(ms(60)).renewal(Renewal::Manual);
    let expired = lock.acquire_within(LIMIT).unwrap();
    eventually(LIMIT, "it ends", || !exists(&server, "k"));
    let mut monitor = server.monitor();
    let sent = |lines: Vec<String>| lines.iter().filter(|line| !line.contains(" lua] ")).count();
    let late = expired.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Expired, .. }))),
        "{late:?}"
    );
    assert_eq!(sent(monitor.so_far()), 1);

    let robbed = client.lock("k").acquire().unwrap();
    let thief = client.lock("k").label("thief").steal().unwrap();
    drop(monitor.so_far());
    let late = robbed.release();
    let Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { holder }, .. })) = late else {
        panic!("{late:?}")
    };
    assert_eq!(holder.to_string(), "thief");
    assert_eq!(sent(monitor.so_far()), 1);
    thief.release().unwrap();
}

/// Reproduces: an acquisition takes long, and what it says is left was counted from the answer, or
/// from the first of many attempts.
#[test]
fn validity_counts_from_before_the_attempt_that_succeeded() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let client = Client::connect(&proxy.url()).unwrap();
    client.lock("warm").acquire().unwrap().release().unwrap();
    let lock = client.lock("k").ttl(secs(10));
    proxy.delay_replies(ms(300));
    let guard = lock.acquire().unwrap();
    let left = guard.valid_for().unwrap();
    assert!(left <= ms(10_000 - 102 - 300), "{left:?}");
    guard.release().unwrap();
    proxy.heal();
    // Waited for far longer than a TTL, and yet as good as new.
    let holder = Client::connect(&server.url()).unwrap().lock("k").acquire().unwrap();
    let lock = lock.ttl(ms(500));
    let waiter = std::thread::spawn(move || lock.acquire_within(secs(30)));
    std::thread::sleep(ms(1_000));
    holder.release().unwrap();
    let guard = waiter.join().unwrap().unwrap();
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

/// Reproduces: what is left when the answer comes is too little to work with, or nothing at all,
/// and the caller gets the lock nevertheless.
#[test]
fn a_grant_with_too_little_validity_left_is_undone() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let client = Client::connect(&proxy.url()).unwrap();
    client.lock("warm").acquire().unwrap().release().unwrap();
    proxy.delay_replies(ms(200));
    // 600 s less 1 % and 2 ms can be left, and 200 ms less than that are.
    let most = ms(600_000 - 6_002);
    let lock = client.lock("k").ttl(secs(600));
    let late = lock.clone().min_validity(most - ms(150)).try_acquire();
    let Err(AcquireError::NoQuorum(none)) = late else { panic!("{late:?}") };
    assert_eq!(none.failed[0].kind(), NodeErrorKind::TimedOut);
    eventually(LIMIT, "it is undone", || !exists(&server, "k"));
    // An order that can be met is met.
    lock.min_validity(most / 2).acquire().unwrap().release().unwrap();
}

/// Reproduces: the client sends the end of the key as a time of day by its own clock:
/// one that is slow acquires a key that is over, one that is fast holds it for too long.
/// Only spans are sent, so any difference between the clocks changes nothing.
#[test]
fn clocks_that_differ_change_no_ttl() {
    let server = Server::builder(ServerKind::Redis70).shim().start();
    let client = Client::connect(&server.url()).unwrap();
    let hour = 3_600_000;
    let mut last = 0;
    for step in [hour, -2 * hour, -24 * hour, 365 * 24 * hour] {
        server.clock().step_ms(step);
        let guard = client.lock(format!("k{step}")).ttl(secs(30)).acquire().unwrap();
        let left = server.cmd(&["PTTL", &format!("k{step}")]).int();
        assert!(left > 10_000 && left <= 30_000, "{left} after a step of {step} ms");
        assert!(guard.valid_for().unwrap() > Duration::from_secs(10));
        guard.extend(secs(60)).unwrap();
        assert!(server.cmd(&["PTTL", &format!("k{step}")]).int() <= 60_000);
        guard.release().unwrap();
        // The same lock through all steps: its numbers grow when the clock goes back, too.
        let guard = client.lock("same").acquire().unwrap();
        assert!(guard.fencing_token().get() > last, "after a step of {step} ms");
        last = guard.fencing_token().get();
        guard.release().unwrap();
    }
}
