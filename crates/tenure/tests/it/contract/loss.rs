//! Losing a lease, and keeping it.

use std::{thread, time::Instant};

use tenure::{
    AcquireError, ExtendError, InspectError, Loss, LossReason, ReleaseError, Renewal,
    RevalidateError,
};

use super::place::Place;
use crate::{LIMIT, ms, secs};

pub(super) fn max_hold_ends_the_lease_and_its_renewal(at: &Place) {
    let lock = at.client().lock(&at.key).ttl(ms(1_200)).max_hold(ms(400));
    let began = Instant::now();
    let guard = lock.acquire_within(LIMIT).unwrap();
    assert_eq!(guard.lost(), LossReason::MaxHold);
    assert!(began.elapsed() >= ms(400));
    assert_eq!(guard.valid_for(), None);
    let refused = guard.extend(secs(60));
    assert!(
        matches!(refused, Err(ExtendError::NotHeld(Loss { reason: LossReason::MaxHold, .. }))),
        "{refused:?}"
    );
    // The guard lives, but nobody renews.
    at.becomes_free();
    drop(guard);
}

pub(super) fn a_lease_is_renewed_for_as_long_as_it_is_held(at: &Place) {
    let guard = at.client().lock(&at.key).ttl(secs(3)).acquire().unwrap();
    thread::sleep(ms(3_500));
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    assert!(at.is_held());
    guard.release().unwrap();
}

pub(super) fn a_lease_without_renewal_is_lost_before_its_ttl_ends(at: &Place) {
    let began = Instant::now();
    let lock = at.client().lock(&at.key).ttl(ms(400)).renewal(Renewal::Manual);
    let guard = lock.acquire_within(LIMIT).unwrap();
    assert_eq!(guard.lost(), LossReason::Expired);
    // 400 ms, less 6 ms of drift, less a margin of 50 ms for late timers: not before that.
    assert!(began.elapsed() >= ms(344));
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Expired));
    assert_eq!(guard.valid_for(), None);
    // Too late to extend, whatever the server would say.
    let refused = guard.extend(secs(20));
    assert!(
        matches!(refused, Err(ExtendError::NotHeld(Loss { reason: LossReason::Expired, .. }))),
        "{refused:?}"
    );
    at.becomes_free();
}

pub(super) fn all_callers_that_await_the_loss_get_the_same_reason(at: &Place) {
    let guard = at.client().lock(&at.key).acquire().unwrap();
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..4)
            .map(|n| {
                let (guard, lease) = (&guard, guard.lease());
                scope.spawn(move || match n % 2 {
                    0 => guard.lost(),
                    _ => smol::block_on(lease.lost()),
                })
            })
            .collect();
        at.client().lock(&at.key).force_release().unwrap();
        // The holder learns of it by any request of its own.
        let refused = guard.extend(secs(20));
        assert!(
            matches!(refused, Err(ExtendError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
            "{refused:?}"
        );
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), LossReason::Gone);
        }
    });
    assert_eq!(guard.lost(), LossReason::Gone, "later callers, too");
}

pub(super) fn the_handle_of_the_work_ends_with_the_release(at: &Place) {
    let lock = at.client().lock(&at.key);
    let guard = lock.acquire().unwrap();
    let lease = guard.lease();
    assert_eq!(lease.ensure_held().map_err(|loss| loss.reason), Ok(()));
    assert_eq!(lease.fencing_token(), guard.fencing_token());
    guard.release().unwrap();
    assert_eq!(lease.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Released));
    assert_eq!(lease.valid_for(), None);
    assert_eq!(smol::block_on(lease.lost()), LossReason::Released);
    let guard = lock.acquire().unwrap();
    assert_eq!(
        lease.ensure_held().map_err(|loss| loss.reason),
        Err(LossReason::Released),
        "a later lease is another"
    );
    guard.release().unwrap();
}

pub(super) fn a_closed_client_holds_nothing_and_says_so(at: &Place) {
    // The table in memory outlives the client that is closed.
    let witness = at.client();
    let client = at.client();
    let lock = client.lock(&at.key).ttl(ms(300));
    drop(client.lock(format!("{}-dropped", at.key)).acquire().unwrap());
    let guard = lock.acquire_within(LIMIT).unwrap();
    let lease = guard.lease();
    client.close().unwrap();
    assert!(witness.lock(format!("{}-dropped", at.key)).inspect().unwrap().held.is_none());
    assert_eq!(guard.lost(), LossReason::EngineStopped);
    assert_eq!(lease.ensure_held().map_err(|loss| loss.reason), Err(LossReason::EngineStopped));
    assert_eq!(guard.valid_for(), None);
    assert!(matches!(guard.extend(secs(1)), Err(ExtendError::EngineStopped { .. })));
    assert!(matches!(guard.revalidate(), Err(RevalidateError::EngineStopped { .. })));
    assert!(matches!(lock.acquire(), Err(AcquireError::EngineStopped { .. })));
    assert!(matches!(lock.try_acquire(), Err(AcquireError::EngineStopped { .. })));
    assert!(matches!(lock.inspect(), Err(InspectError::EngineStopped { .. })));
    assert!(matches!(guard.release(), Err(ReleaseError::EngineStopped { .. })));
    at.becomes_free();
}
