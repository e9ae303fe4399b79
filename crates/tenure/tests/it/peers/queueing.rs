//! What a queue on a server may do wrong.

use std::thread;

use tenure::{AcquireError, ReleaseError, blocking::Client};
use tenure_testkit::{Gated, Proxy, Server, ServerKind, eventually, scale, unique_key};

use crate::{
    LIMIT, ms,
    queue::line::{Line, channels, nothing_is_left, queue},
    secs,
    servers::{any, exists, get, scripts},
};

/// Reproduces: a waiter that lives is thrown out since the hold is longer than some limit, and is
/// never notified of the release.
/// Here the TTL that they read passes again and again, and they poll each time.
#[test]
fn a_hold_longer_than_its_ttl_costs_no_waiter_its_place() {
    let key = unique_key("queueing");
    let holder = Client::connect(&any().url()).unwrap();
    let guard = holder.lock(&key).ttl(ms(2_500)).acquire().unwrap();
    let others = [(); 3].map(|()| Client::connect(&any().url()).unwrap());
    let mut line = Line::before(holder.lock(&key));
    others.iter().for_each(|other| line.join(&other.lock(&key)));
    thread::sleep(secs(scale(4, 30) as u64));
    guard.release().unwrap();
    line.was_served_in_order();
}

/// Reproduces: short waits that ran out push the deadlines in the queue hours ahead, and one who
/// has time is stuck behind them.
#[test]
fn waits_that_timed_out_leave_nothing_in_the_queue() {
    let key = unique_key("queueing");
    let [holder, hasty, steady] = [(); 3].map(|()| Client::connect(&any().url()).unwrap());
    let guard = holder.lock(&key).ttl(secs(600)).acquire().unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..scale(10, 1_000) {
                    assert!(hasty.lock(&key).ttl(secs(30)).acquire_within(ms(20)).is_err());
                }
            });
        }
    });
    eventually(LIMIT, "they are gone", || channels(any(), &key).is_empty());
    let mut line = Line::before(holder.lock(&key));
    line.join(&steady.lock(&key).ttl(secs(600)));
    guard.release().unwrap();
    line.was_served_in_order();
    eventually(LIMIT, "nothing is left", || nothing_is_left(any(), &key));
}

/// Reproduces: the server is slow to answer, the acquisition fails, and its entry stays in the
/// queue.
#[test]
fn a_join_whose_reply_is_lost_leaves_no_entry() {
    let key = unique_key("queueing");
    let proxy = Proxy::to(any());
    let holder = Client::connect(&any().url()).unwrap();
    let client = Client::connect(&proxy.url()).unwrap();
    let guard = holder.lock(&key).ttl(secs(600)).acquire().unwrap();
    client.lock(&key).inspect().unwrap();
    let mut monitor = any().monitor();
    proxy.drop_replies();
    let failed = client.lock(&key).ttl(secs(600)).acquire_within(ms(300));
    assert!(matches!(failed, Err(AcquireError::NoQuorum(_))), "{failed:?}");
    proxy.heal();
    // The control: it did join.
    let queue = queue(&key);
    monitor.lines_until(|line| line.contains("\"ZADD\"") && line.contains(&queue));
    eventually(LIMIT, "its entry is gone", || channels(any(), &key).is_empty());
    guard.release().unwrap();
    client.close().unwrap();
    assert!(nothing_is_left(any(), &key));
}

/// Reproduces: one of the keys is gone in the middle of a wait, and scripts fail from then on.
#[test]
fn a_key_deleted_under_its_waiters_recovers() {
    let deleted: [fn(&str) -> String; 2] =
        [|key| queue(key), |key| format!("{{{key}}}:tenure.fence")];
    thread::scope(|scope| {
        for name in deleted {
            scope.spawn(move || {
                let key = unique_key("queueing");
                let client = Client::connect(&any().url()).unwrap();
                // They poll when the TTL that they read is over.
                let guard = client.lock(&key).ttl(ms(1_500)).acquire().unwrap();
                let mut line = Line::before(client.lock(&key));
                (0..3).for_each(|_| line.join(&client.lock(&key)));
                assert_eq!(any().cmd(&["DEL", &name(&key)]).int(), 1);
                guard.release().unwrap();
                let served = line.all();
                assert_eq!(served.len(), 3);
            });
        }
    });
}

/// Reproduces: a TTL that is none, or over, is taken for "no end", or for "ask again at once".
#[test]
fn a_waiter_neither_hangs_nor_spins_whatever_ttl_it_reads() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let guard = client.lock("k").ttl(ms(2_500)).acquire().unwrap();
    let mut line = Line::before(client.lock("k"));
    line.join(&client.lock("k"));
    // By hand, and for the renewals as good as before.
    assert_eq!(server.cmd(&["PERSIST", "k"]).int(), 1);
    (0..2).for_each(|_| line.join(&client.lock("k")));
    let before = scripts(&server);
    thread::sleep(ms(3_000));
    // Four renewals in that time, and a look.
    let asked = scripts(&server) - before;
    assert!((1..=8).contains(&asked), "{asked}");
    guard.release().unwrap();
    line.was_served_in_order();
}

/// Reproduces: the release is published while the waiter's subscription is gone, and it sleeps on.
#[test]
fn a_release_while_the_subscriptions_are_cut_is_not_missed() {
    let server = Server::start(ServerKind::Valkey91);
    let [holder, one, other] = [(); 3].map(|()| Client::connect(&server.url()).unwrap());
    for round in 0..scale(20, 1_000) {
        let guard = holder.lock("k").ttl(secs(600)).acquire_within(LIMIT).unwrap();
        let mut line = Line::before(holder.lock("k"));
        line.join(&one.lock("k").ttl(secs(600)));
        line.join(&other.lock("k").ttl(secs(600)));
        let killed = server.cmd(&["CLIENT", "KILL", "TYPE", "pubsub"]).int();
        assert!(killed >= 2, "{killed} in round {round}");
        // The holder may have waited before, and be cut off too: then it says so.
        drop(guard.release());
        assert_eq!(line.all().len(), 2, "in round {round}");
    }
}

/// Reproduces: something goes on renewing or looking when all is over.
#[test]
fn after_the_last_release_nothing_is_sent() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let lock = client.lock("k").ttl(ms(600));
    let guard = lock.acquire().unwrap();
    let mut line = Line::before(lock.clone());
    (0..3).for_each(|_| line.join(&lock));
    guard.release().unwrap();
    line.was_served_in_order();
    let mut monitor = server.monitor();
    thread::sleep(ms(1_200));
    let lines = monitor.so_far();
    assert!(lines.is_empty(), "{lines:?}");
}

/// Reproduces: the acquisition timed out and nevertheless holds the lock; the next one of the same
/// client enters it a second time, and one release leaves it held.
/// Here it is the confirmation of a hand-over that is lost.
#[test]
fn a_waiter_whose_confirmation_is_lost_holds_the_lock_once() {
    for fate in [Gated::Swallowed, Gated::Cut] {
        let key = unique_key("queueing");
        let proxy = Proxy::to(any());
        let holder = Client::connect(&any().url()).unwrap();
        let client = Client::connect(&proxy.url()).unwrap();
        let guard = holder.lock(&key).ttl(secs(600)).acquire().unwrap();
        let lock = client.lock(&key).ttl(secs(600));
        let waiter = thread::spawn(move || lock.acquire_within(LIMIT));
        eventually(LIMIT, "it waits", || channels(any(), &key).len() == 1);
        client.lock(&key).inspect().unwrap();
        // It is notified of its turn, and what comes next is lost.
        proxy.gate_replies(1, fate);
        guard.release().unwrap();
        eventually(LIMIT, "the gate is met", || proxy.gate_was_met());
        proxy.heal();
        let guard = waiter.join().unwrap().unwrap();
        assert_eq!(get(any(), &key).text(), Some(guard.token().as_str()));
        assert_eq!(holder.lock(&key).inspect().unwrap().last_number, Some(guard.fencing_token()));
        guard.release().unwrap();
        assert!(!exists(any(), &key), "held a second time");
    }
}

/// Reproduces: the release is carried out and its reply lost; it is sent again, and ends in an
/// error, or in another's lock.
#[test]
fn a_repeated_release_leaves_the_next_holder_alone() {
    let key = unique_key("queueing");
    let proxy = Proxy::to(any());
    let client = Client::connect(&proxy.url()).unwrap();
    let next = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).ttl(secs(600)).acquire().unwrap();
    let waiter = {
        let lock = next.lock(&key).ttl(secs(600));
        thread::spawn(move || lock.acquire_within(LIMIT).unwrap())
    };
    eventually(LIMIT, "it waits", || channels(any(), &key).len() == 1);
    proxy.drop_next_replies_then_cut(1);
    let unsure = guard.release();
    assert!(matches!(unsure, Err(ReleaseError::Unconfirmed(_))), "{unsure:?}");
    let guard = waiter.join().unwrap();
    // When it is closed, the release was answered.
    client.close().unwrap();
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    assert_eq!(get(any(), &key).text(), Some(guard.token().as_str()));
    guard.release().unwrap();
}
