//! Waiters of several processes: which are present, and which are notified.

use std::{thread, time::Instant};

use rustix::process::Signal;
use tenure::blocking::LockGuard;
use tenure_testkit::{TempDir, eventually, scale};

use super::{Store, connect, given};
use crate::{
    LIMIT, ms,
    program::{self, Program},
    secs,
};

/// The program: waits for the lock without an end, and releases it on request.
pub(super) fn wait() {
    let lock = connect(&given()).lock("k");
    program::say("waits");
    let guard = lock.acquire().unwrap();
    program::say("acquired");
    program::heed();
    guard.release().unwrap();
    program::say("released");
    program::heed();
}

/// Waits until so many are in the queue.
pub(super) fn until_waiting(store: &Store, count: u64) {
    let lock = store.lock("k");
    eventually(LIMIT, "all wait", || lock.inspect().unwrap().waiting == Some(count));
}

/// Starts this many, each behind the one before it.
fn start_waiters(store: &Store, count: u64) -> Vec<Program> {
    let start = |already| {
        let mut waiter = store.start("wait in the store", &[]);
        assert_eq!(waiter.hear(), "waits");
        until_waiting(store, already + 1);
        waiter
    };
    (0..count).map(start).collect()
}

fn held(store: &Store) -> LockGuard {
    store.lock("k").acquire().unwrap()
}

/// One that is stopped waits still: it may go on before its turn.
#[test]
fn a_killed_waiter_is_not_listed_and_a_stopped_one_is() {
    let store = Store::new();
    let guard = held(&store);
    let mut waiters = start_waiters(&store, 3);
    waiters[1].stop();
    until_waiting(&store, 3);
    waiters.remove(2).signal(Signal::KILL);
    until_waiting(&store, 2);
    waiters[1].signal(Signal::KILL);
    until_waiting(&store, 1);
    guard.release().unwrap();
    assert_eq!(waiters[0].hear(), "acquired");
}

#[test]
fn killed_waiters_cost_nothing_and_a_stopped_one_its_provisional_grant() {
    let store = Store::new();
    let guard = held(&store);
    let mut waiters = start_waiters(&store, 5);
    waiters[0].signal(Signal::KILL);
    waiters[1].stop();
    waiters[2].signal(Signal::KILL);
    guard.release().unwrap();
    assert_eq!(waiters[3].hear(), "acquired");
    waiters[1].signal(Signal::CONT);
    until_waiting(&store, 2);
    waiters[3].tell("release");
    assert_eq!(waiters[3].hear(), "released");
    // It kept its place before the last one.
    assert_eq!(waiters[1].hear(), "acquired");
    waiters[1].tell("release");
    assert_eq!(waiters[4].hear(), "acquired");
}

/// Two processes take turns. A waiter that had to look would look after a quarter of a second.
#[test]
fn a_hand_over_needs_no_polling() {
    let store = Store::new();
    let lock = store.lock("k");
    let mut other = store.start("take turns in the store", &[]);
    assert_eq!(other.hear(), "ready");
    let rounds: u32 = u32::try_from(scale(100, 1_000)).unwrap();
    let guard = lock.acquire().unwrap();
    other.tell(&rounds.to_string());
    until_waiting(&store, 1);
    let began = Instant::now();
    drop(guard.release());
    for _ in 1..rounds {
        let guard = lock.acquire().unwrap();
        until_waiting(&store, 1);
        guard.release().unwrap();
    }
    drop(lock.acquire().unwrap());
    let took = began.elapsed();
    assert!(took < ms(200) * rounds, "{rounds} hand-overs took {took:?}");
}

/// The program of the other side.
pub(super) fn take_turns() {
    let client = connect(&given());
    let (lock, seen) = (client.lock("k"), client.lock("k"));
    program::say("ready");
    let rounds: u32 = program::heed().parse().unwrap();
    for round in 1..=rounds {
        let guard = lock.acquire().unwrap();
        if round < rounds {
            eventually(LIMIT, "the other waits", || seen.inspect().unwrap().waiting == Some(1));
        }
        guard.release().unwrap();
    }
}

/// Somebody tidies up in the store's directory.
#[test]
fn a_waiter_whose_socket_was_deleted_is_still_served() {
    let store = Store::new();
    let guard = store.lock("k").ttl(secs(2)).acquire().unwrap();
    let mut waiters = start_waiters(&store, 2);
    let sockets = store.directory.path().join("locks.db-waiters");
    std::fs::remove_dir_all(&sockets).unwrap();
    guard.release().unwrap();
    for _ in 0..2 {
        let lock = store.lock("k");
        eventually(LIMIT, "one holds it", || lock.inspect().unwrap().held.is_some());
        let next = waiters.remove(0);
        drop(next);
    }
}

/// Where no socket can be made waiters poll, without a place in the queue.
#[test]
fn without_sockets_waiters_poll_and_are_served() {
    let store = Store::new();
    let guard = held(&store);
    // Something else is in their place.
    let sockets = store.directory.path().join("locks.db-waiters");
    std::fs::remove_dir_all(&sockets).unwrap();
    std::fs::write(sockets, b"").unwrap();
    let mut waiter = store.start("wait in the store", &[]);
    assert_eq!(waiter.hear(), "waits");
    thread::sleep(ms(50));
    assert_eq!(store.lock("k").inspect().unwrap().waiting, Some(0));
    guard.release().unwrap();
    assert_eq!(waiter.hear(), "acquired");
}

/// Paths of sockets are short; those of stores need not be.
#[test]
fn a_store_with_a_long_path_notifies_its_waiters() {
    let directory = TempDir::new();
    let long = directory.path().join("d".repeat(200));
    std::fs::create_dir(&long).unwrap();
    let file = long.join("locks.db");
    let lock = connect(&file).lock("k");
    let guard = lock.acquire().unwrap();
    let settings = [("STORE", file.to_str().unwrap())];
    let mut waiter = Program::start("wait in the store", &settings);
    assert_eq!(waiter.hear(), "waits");
    eventually(LIMIT, "it waits", || lock.inspect().unwrap().waiting == Some(1));
    guard.release().unwrap();
    assert_eq!(waiter.hear(), "acquired");
}
