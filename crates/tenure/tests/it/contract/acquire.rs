//! Acquiring: at once, within a wait, and not at all.

use std::{thread, time::Instant};

use tenure::{AcquireError, Wait};

use super::place::Place;
use crate::{ms, ran_out, secs};

pub(super) fn a_free_lock_is_acquired_and_a_released_one_again(at: &Place) {
    let lock = at.client().lock(&at.key);
    let guard = lock.acquire().unwrap();
    assert_eq!(guard.key().as_bytes(), at.key.as_bytes());
    assert!(at.is_held());
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    // Ten seconds, less the drift allowance, less what has passed.
    assert!(guard.valid_for().unwrap() <= ms(10_000 - 102));
    guard.release().unwrap();
    assert!(!at.is_held());
    lock.acquire().unwrap().release().unwrap();
    lock.try_acquire().unwrap().expect("a free lock").release().unwrap();
}

pub(super) fn a_busy_lock_is_a_result_and_not_an_error(at: &Place) {
    let guard = at.client().lock(&at.key).acquire().unwrap();
    assert!(at.client().lock(&at.key).try_acquire().unwrap().is_none());
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

pub(super) fn a_lock_is_not_reentrant(at: &Place) {
    let client = at.client();
    let lock = client.lock(&at.key);
    let guard = lock.acquire().unwrap();
    assert!(lock.try_acquire().unwrap().is_none());
    assert!(client.lock(&at.key).try_acquire().unwrap().is_none());
    // The second try must not have cost the first its lease.
    assert!(at.is_held());
    guard.release().unwrap();
}

pub(super) fn a_lock_released_during_the_wait_is_acquired(at: &Place) {
    let guard = at.client().lock(&at.key).acquire().unwrap();
    let first = guard.fencing_token();
    let waiting = at.client().lock(&at.key);
    let waiter = thread::spawn(move || waiting.acquire_within(secs(30)));
    // Whether or not the waiter has tried by now, it gets the lock from here.
    guard.release().unwrap();
    let guard = waiter.join().unwrap().unwrap();
    assert!(guard.fencing_token() > first);
    guard.release().unwrap();
}

pub(super) fn a_lock_free_at_the_last_moment_is_acquired_and_none_later(at: &Place) {
    let wait = ms(800);
    let guard = at.client().lock(&at.key).acquire().unwrap();
    let waiting = at.client().lock(&at.key);
    let waiter = thread::spawn(move || {
        let began = Instant::now();
        (began, waiting.acquire_within(wait), began.elapsed())
    });
    // Polls are a quarter of a second apart by then: mostly only a last try finds the lock free.
    thread::sleep(wait - ms(150));
    guard.release().unwrap();
    let released = Instant::now();
    let (began, taken, waited) = waiter.join().unwrap();
    match taken {
        Ok(guard) => guard.release().unwrap(),
        missed if ran_out(&missed) => {
            // On a busy machine the release may have come too late, or the outcome is unknown.
            let is_sure = matches!(missed, Err(AcquireError::TimedOut { .. }));
            assert!(!is_sure || released >= began + wait, "it was free before the end of the wait");
            assert!(waited >= wait, "gave up after {waited:?}");
            at.becomes_free();
        }
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn a_wait_of_zero_is_one_try(at: &Place) {
    let lock = at.client().lock(&at.key);
    let other = at.client().lock(&at.key);
    for wait in [Wait::No, Wait::Within(ms(0))] {
        let other = other.clone().wait(wait);
        let guard = lock.acquire().unwrap();
        assert!(matches!(other.acquire(), Err(AcquireError::TimedOut { .. })));
        assert!(matches!(other.acquire_within(ms(0)), Err(AcquireError::TimedOut { .. })));
        guard.release().unwrap();
        other.acquire().unwrap().release().unwrap();
        other.acquire_within(ms(0)).unwrap().release().unwrap();
    }
}

pub(super) fn an_unlimited_wait_ends_with_the_release(at: &Place) {
    let guard = at.client().lock(&at.key).acquire().unwrap();
    let waiting = at.client().lock(&at.key).wait(Wait::Forever);
    let waiter = thread::spawn(move || waiting.acquire());
    thread::sleep(ms(100));
    assert!(!waiter.is_finished());
    guard.release().unwrap();
    waiter.join().unwrap().unwrap().release().unwrap();
}

pub(super) fn a_wait_that_timed_out_reports_its_length_and_the_holder(at: &Place) {
    let guard = at.client().lock(&at.key).label("a b").acquire().unwrap();
    let wait = ms(120);
    let began = Instant::now();
    let missed = at.client().lock(&at.key).wait(Wait::Within(wait)).acquire();
    let passed = began.elapsed();
    assert!(ran_out(&missed) && passed >= wait, "{missed:?} after {passed:?}");
    if let Err(AcquireError::TimedOut { waited, .. }) = missed {
        assert!(waited >= wait && waited <= passed, "{waited:?} of {passed:?}");
    }
    let missed = at.client().lock(&at.key).acquire_within(ms(0));
    let Err(AcquireError::TimedOut { holder, .. }) = missed else { panic!("{missed:?}") };
    assert_eq!(holder.to_string(), "a b");
    assert!(!holder.is_foreign());
    guard.release().unwrap();
}
