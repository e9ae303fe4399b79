//! Processes that are stopped, by SIGSTOP or Ctrl-Z, where they hold up everybody.

use std::{thread, time::Duration};

use rustix::process::Signal;
use tenure::NodeErrorKind;
use tenure_testkit::{eventually, scale};

use super::{
    Store,
    inside::{AHEAD, Depth},
    untold,
};
use crate::{LIMIT, ms, secs};

/// What the store promises: others go on within it.
const OTHERS_GO_ON: Duration = secs(2);

/// Whether the trouble is that others are in the way, which ends without anybody's doing.
pub(super) fn is_held_up(kind: NodeErrorKind) -> bool {
    matches!(kind, NodeErrorKind::Busy | NodeErrorKind::TimedOut)
}

/// Reproduces: a process is inside its transaction, and keeps the file's lock.
#[test]
fn a_transaction_that_is_held_up_is_waited_for_and_told() {
    let store = Store::new();
    let lock = store.lock("k").ttl(secs(4));
    lock.acquire().unwrap().release().unwrap();
    let mut sql = store.sql();
    let transaction =
        sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    assert!(untold(lock.try_acquire()).is_retryable());
    transaction.rollback().unwrap();
    lock.acquire_within(secs(5)).unwrap().release().unwrap();
}

/// Whatever the TTL, which also says how long one op may take; and whether or not the one who waits
/// had the store open before.
#[test]
fn a_process_stopped_inside_its_transaction_ends_it_for_others_and_stays_stopped() {
    for depth in Depth::ALL {
        for (ttl, opened) in
            [(secs(30), true), (secs(30), false), (ms(200), true), (ms(200), false)]
        {
            let case = format!("{depth:?}, {ttl:?}, opened before: {opened}");
            let store = Store::new();
            let before = store.lock("k").acquire().unwrap();
            let number = before.fencing_token().get();
            before.release().unwrap();
            let other = store.lock("other").ttl(ttl);
            assert!(!opened || other.inspect().unwrap().held.is_none());
            let mut program = store.start_inside(depth);
            program.stop();
            // It finds the line when it runs on.
            program.tell("commit");
            let guard = other.acquire_within(OTHERS_GO_ON);
            guard.unwrap_or_else(|error| panic!("{case}: {error}")).release().unwrap();
            eventually(LIMIT, "it is stopped again", || program.is_stopped());
            // The whole of what it committed counts; its holder's lease has long ended.
            let next = store.lock("k").try_acquire().unwrap().expect("nobody holds it");
            assert!(next.fencing_token().get() > number + AHEAD, "{case}");
            next.release().unwrap();
            // It may have been stopped again before it could say so.
            program.signal(Signal::CONT);
            assert_eq!(program.hear(), "committed", "{case}");
            program.tell("end");
            program.end_well();
        }
    }
}

/// One that does not end its transaction even so is not left running.
#[test]
fn a_stopped_process_that_stays_inside_is_told_as_busy_and_stays_stopped() {
    for depth in Depth::ALL {
        let store = Store::new();
        store.lock("k").acquire().unwrap().release().unwrap();
        let mut program = store.start_inside(depth);
        program.stop();
        let error = untold(store.lock("other").ttl(secs(4)).try_acquire());
        assert!(is_held_up(error.kind()) && error.is_retryable(), "{depth:?}: {error:?}");
        eventually(LIMIT, "it is stopped again", || program.is_stopped());
        program.tell("commit");
        store.lock("other").acquire_within(OTHERS_GO_ON).unwrap().release().unwrap();
    }
}

/// Renewals meet the same file lock.
#[test]
fn a_lease_outlives_another_process_that_is_stopped_inside_its_transaction() {
    let store = Store::new();
    let ttl = secs(1);
    store.lock("k").acquire().unwrap().release().unwrap();
    let guard = store.lock("held").ttl(ttl).acquire().unwrap();
    let mut program = store.start_inside(Depth::Begun);
    program.stop();
    program.tell("commit");
    // Without a renewal it would end in this time.
    thread::sleep(ttl);
    assert_eq!(guard.ensure_held(), Ok(()));
    eventually(LIMIT, "it is stopped again", || program.is_stopped());
    guard.release().unwrap();
}

/// The library's own transactions, wherever they are.
#[test]
fn a_process_stopped_at_any_moment_lets_others_go_on() {
    let store = Store::new();
    let program = &mut store.start("come and go in the store", &[("TTL_MS", "600000")]);
    let other = store.lock("other");
    for round in 0..scale(20, 200) {
        super::killed::until_past(program, 0);
        // Nothing is waited for: what varies is the moment.
        thread::sleep(Duration::from_micros((round as u64 * 379) % 3_000));
        program.stop();
        other.acquire_within(OTHERS_GO_ON).unwrap().release().unwrap();
        eventually(LIMIT, "it is stopped again", || program.is_stopped());
        program.signal(Signal::CONT);
    }
    assert!(store.is_sound());
}
