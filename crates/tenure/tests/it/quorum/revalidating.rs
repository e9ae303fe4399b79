//! A holder that was stopped past its lease, and asks whether it held the lock all the time.

use std::{thread, time::Duration};

use rustix::process::Signal;
use tenure::{
    LossReason, Renewal, RevalidateError,
    blocking::{Client, LockGuard},
};
use tenure_testkit::{Frozen, Gated, Server, eventually, scale, unique_key};

use super::{Nodes, all_catch_up};
use crate::{
    LIMIT,
    program::{self, Program},
    secs, servers,
};

/// Short, since the holder stops for longer; and long enough to renew on a busy machine.
const TTL: Duration = secs(3);

/// A lease whose key is on every node, as its holder knows.
fn held_by_all(client: &Client, key: &str, ttl: Duration) -> LockGuard {
    let lock = client.lock(key).ttl(ttl).node_limit(LIMIT);
    let guard = lock.acquire_within(LIMIT).unwrap();
    all_catch_up(&lock);
    guard
}

/// Stops a new holder of the key until its lease has run out.
fn stopped_holder(nodes: &Nodes, key: &str) -> Program {
    let mut holder = Program::start("hold and prove", &[("SERVERS", &nodes.urls()), ("KEY", key)]);
    assert_eq!(holder.hear(), "held");
    holder.stop();
    holder
}

/// What the holder says when it runs on.
fn runs_on(holder: &mut Program) -> String {
    // The line is there before it runs on: the first thing that it does is to look.
    holder.tell("prove");
    holder.signal(Signal::CONT);
    assert_eq!(holder.hear(), "lost in a pause");
    holder.hear()
}

/// The holder: is stopped, looks, asks whether it held the lock all the time, and goes on.
pub(super) fn holder() {
    let client = Client::connect(&program::setting("SERVERS")).unwrap();
    let guard = held_by_all(&client, &program::setting("KEY"), TTL);
    let (number, lease) = (guard.fencing_token(), guard.lease());
    program::say("held");
    // Stopped in here.
    program::heed();
    let lost = lease.ensure_held().expect_err("it was stopped past its lease");
    let is_pause = |reason: &LossReason| matches!(reason, LossReason::Paused { .. });
    assert!(is_pause(&lost.reason), "{lost}");
    assert_eq!(guard.valid_for(), None);
    assert!(is_pause(&guard.lost()));
    program::say("lost in a pause");
    let proved = loop {
        match guard.revalidate() {
            // What was on its way when it was stopped may have broken its connections.
            Err(RevalidateError::Unconfirmed(_)) => {}
            proved => break proved,
        }
    };
    assert_eq!(guard.fencing_token(), number);
    match proved {
        Ok(()) => {
            assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
            // It is renewed as before.
            thread::sleep(TTL * 4 / 3);
            assert!(guard.ensure_held().is_ok() && lease.ensure_held().is_ok());
            guard.release().unwrap();
            program::say("held all the time");
        }
        Err(error) => {
            assert!(guard.ensure_held().is_err_and(|loss| is_pause(&loss.reason)));
            program::say(&error.to_string());
        }
    }
}

/// A majority has had the key all the time, whatever became of the others.
#[test]
fn a_stopped_holder_whose_majority_kept_the_key_is_revalidated() {
    let nodes = Nodes::start(5);
    for _ in 0..scale(2, 20) {
        let key = unique_key("kept");
        let mut holder = stopped_holder(&nodes, &key);
        for node in &nodes.0[..3] {
            assert_eq!(node.cmd(&["PEXPIRE", &key, "600000"]).int(), 1);
        }
        for node in &nodes.0[3..] {
            eventually(LIMIT, "a minority loses it", || !servers::exists(node, &key));
        }
        assert_eq!(runs_on(&mut holder), "held all the time");
        holder.end_well();
        nodes.becomes_free(&key);
    }
}

/// A majority has lost the key, and another has held the lock meanwhile; it is free again, and
/// still the holder must not be informed that it had it all the time.
#[test]
fn a_stopped_holder_whose_majority_lost_the_key_is_not_revalidated() {
    let nodes = Nodes::start(5);
    for _ in 0..scale(2, 20) {
        let key = unique_key("not-kept");
        let mut holder = stopped_holder(&nodes, &key);
        for node in &nodes.0[..2] {
            assert_eq!(node.cmd(&["PEXPIRE", &key, "600000"]).int(), 1);
        }
        let other = nodes.client().lock(&key).acquire_within(LIMIT).unwrap();
        other.release().unwrap();
        let gone = "is not held any more: the key is gone from the server";
        let told = runs_on(&mut holder);
        assert!(told.contains(gone), "{told}");
        holder.end_well();
        nodes.becomes_free(&key);
    }
}

/// Stops a server, which is to keep the key when it runs on.
fn freeze_with_key(node: &Server, key: &str) -> Frozen {
    assert_eq!(node.cmd(&["PEXPIRE", key, "600000"]).int(), 1);
    node.freeze_process()
}

/// Too few can be asked: that proves nothing, and costs nothing. When they are back it is proved.
#[test]
fn too_few_replies_prove_nothing_and_change_nothing() {
    let (nodes, key) = (Nodes::start(5), unique_key("indeterminate"));
    let guard = held_by_all(&nodes.client(), &key, secs(2));
    let frozen: Vec<_> = nodes.0[..3].iter().map(|node| freeze_with_key(node, &key)).collect();
    let proved = guard.revalidate();
    let Err(RevalidateError::Unconfirmed(errors)) = proved else { panic!("{proved:?}") };
    assert!(errors.iter().count() >= 3, "{errors}");
    assert_eq!(guard.lost(), LossReason::Expired);
    let proved = guard.revalidate();
    assert!(matches!(proved, Err(RevalidateError::Unconfirmed(_))), "{proved:?}");
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Expired));
    drop(frozen);
    eventually(LIMIT, "it is proved", || guard.revalidate().is_ok());
    guard.release().unwrap();
    nodes.becomes_free(&key);
}

/// The third's reply was lost: its request may arrive again and create the key again. That matters
/// only after the end, when nobody else proves what was before.
#[test]
fn a_key_that_may_be_new_proves_nothing_after_expiry() {
    let (nodes, key) = (Nodes::start(3), unique_key("may-be-new"));
    let proxies = nodes.proxies();
    let client = Client::connect(&servers::behind(&proxies)).unwrap();
    let lock = client.lock(&key).ttl(secs(6)).renewal(Renewal::Manual).node_limit(LIMIT);
    all_catch_up(&lock);
    proxies[2].gate_replies(0, Gated::Cut);
    let guard = lock.acquire_within(LIMIT).unwrap();
    eventually(LIMIT, "the third's answer is lost", || proxies[2].gate_was_met());
    proxies[2].heal();
    nodes.prolong(&key);
    // The third is back, has its key, and had it when the last of these was asked for.
    for _ in 0..3 {
        guard.revalidate().unwrap();
        all_catch_up(&lock);
    }
    nodes.prolong(&key);
    eventually(LIMIT, "it has run out", || guard.ensure_held().is_err());
    assert_eq!(nodes.0[0].cmd(&["DEL", &key]).int(), 1);
    let proved = guard.revalidate();
    let Err(RevalidateError::NotHeld(loss)) = proved else { panic!("{proved:?}") };
    assert_eq!(loss.reason, LossReason::Gone);
}
