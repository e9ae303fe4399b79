//! Processes that are stopped, by SIGSTOP or Ctrl-Z, where they hold up everybody.

use std::{error::Error as _, thread, time::Duration};

use rustix::process::Signal;
use tenure::{LossReason, NodeErrorKind};
use tenure_testkit::scale;

use super::{
    Store, indeterminate,
    inside::{AHEAD, Depth},
};
use crate::{LIMIT, ms, secs};

/// Whether the trouble is that others are in the way, which ends without anybody's doing.
pub(super) fn is_held_up(kind: NodeErrorKind) -> bool {
    matches!(kind, NodeErrorKind::Busy | NodeErrorKind::TimedOut)
}

/// Reproduces: a process is inside its transaction, and keeps the file's lock.
#[test]
fn a_delayed_transaction_is_waited_for_and_reported() {
    let store = Store::new();
    let lock = store.lock("k").ttl(secs(4));
    lock.acquire().unwrap().release().unwrap();
    let mut sql = store.sql();
    let transaction =
        sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    assert!(indeterminate(lock.try_acquire()).is_retryable());
    transaction.rollback().unwrap();
    lock.acquire_within(secs(5)).unwrap().release().unwrap();
}

/// Whatever the TTL, which also says how long one op may take; and whether or not the caller had
/// the store open before. The process may have been stopped on purpose, so it gets no signal.
#[test]
fn a_process_stopped_inside_its_transaction_is_named_and_gets_no_signal() {
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
            // It would find the line if it continued.
            program.tell("commit");
            // Long enough for more than one op at the shorter TTL, whose first may end unanswered.
            let error = indeterminate(other.acquire_within(secs(2)).map(Some));
            assert!(error.is_retryable(), "{case}: {error:?}");
            let source = error.source().unwrap_or_else(|| panic!("{case}: {error:?}"));
            let named = format!("process {} (", program.id());
            assert!(source.to_string().starts_with(&named), "{case}: {source}");
            assert!(program.is_stopped(), "{case}");
            program.signal(Signal::CONT);
            assert_eq!(program.hear(), "committed", "{case}");
            other.acquire_within(LIMIT).unwrap().release().unwrap();
            // The whole of what it committed counts; its holder's lease has long ended.
            let next = store.lock("k").try_acquire().unwrap().expect("nobody holds it");
            assert!(next.fencing_token().get() > number + AHEAD, "{case}");
            next.release().unwrap();
            program.tell("end");
            program.end_well();
        }
    }
}

#[test]
fn a_process_stopped_inside_another_store_is_not_named() {
    let (store, elsewhere) = (Store::new(), Store::new());
    for store in [&store, &elsewhere] {
        store.lock("k").acquire().unwrap().release().unwrap();
    }
    let bystander = elsewhere.start_inside(Depth::Begun);
    bystander.stop();
    let mut sql = store.sql();
    let transaction =
        sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let error = indeterminate(store.lock("other").ttl(secs(4)).try_acquire());
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    assert!(is_held_up(error.kind()) && !said.contains("stopped"), "{error:?}");
    transaction.rollback().unwrap();
}

/// Renewals meet the same file lock.
#[test]
fn a_lease_outlives_a_stop_inside_a_transaction_within_its_validity() {
    let store = Store::new();
    store.lock("k").acquire().unwrap().release().unwrap();
    // Longer than this test may take on any machine.
    let guard = store.lock("held").ttl(secs(30)).acquire().unwrap();
    let mut program = store.start_inside(Depth::Begun);
    program.stop();
    indeterminate(store.lock("other").ttl(ms(200)).try_acquire());
    program.tell("commit");
    program.signal(Signal::CONT);
    assert_eq!(program.hear(), "committed");
    guard.extend(secs(40)).unwrap();
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

#[test]
fn a_stop_inside_a_transaction_longer_than_a_lease_is_a_loss() {
    let store = Store::new();
    store.lock("k").acquire().unwrap().release().unwrap();
    let guard = store.lock("held").ttl(secs(1)).acquire().unwrap();
    let mut program = store.start_inside(Depth::Begun);
    program.stop();
    assert_eq!(guard.lost(), LossReason::Expired);
    assert!(program.is_stopped());
    program.tell("commit");
    program.signal(Signal::CONT);
    assert_eq!(program.hear(), "committed");
    drop(guard);
}

/// The library's own transactions, wherever they are.
#[test]
fn a_process_stopped_at_any_moment_delays_others_until_it_continues() {
    let store = Store::new();
    let program = &mut store.start("come and go in the store", &[("TTL_MS", "600000")]);
    let other = store.lock("other").ttl(secs(2));
    for round in 0..scale(20, 200) {
        super::killed::until_past(program, 0);
        // Nothing is waited for: what varies is the moment.
        thread::sleep(Duration::from_micros((round as u64 * 379) % 3_000));
        program.stop();
        if let Ok(guard) = other.try_acquire() {
            guard.expect("nobody holds it").release().unwrap();
            program.signal(Signal::CONT);
        } else {
            program.signal(Signal::CONT);
            other.acquire_within(LIMIT).unwrap().release().unwrap();
        }
    }
    assert!(store.is_sound());
}
