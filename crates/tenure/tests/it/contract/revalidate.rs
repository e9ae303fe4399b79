//! Proving that a lease was held all the time, though its time ran out here.

use std::time::Instant;

use tenure::{Loss, LossReason, Renewal, RevalidateError};
use tenure_testkit::eventually;

use super::{
    place::Place,
    subject::{Guard, Lock},
};
use crate::{LIMIT, ms, secs};

/// A lease that ends soon by the local clock, and whose key lives on: another gave it its TTL.
fn kept_by_another(at: &Place) -> Guard {
    let other = at.client().lock(&at.key).ttl(secs(600));
    let token = other.acquire().unwrap().detach();
    at.all_catch_up(&other);
    short(at).resume(token).unwrap().expect("it holds the lock")
}

fn shortly_held(at: &Place) -> Guard {
    short(at).acquire_within(LIMIT).unwrap()
}

fn short(at: &Place) -> Lock {
    at.client().lock(&at.key).ttl(ms(400)).max_ttl(secs(60)).renewal(Renewal::Manual)
}

pub(super) fn an_expired_lease_that_kept_its_key_is_revalidated(at: &Place) {
    let guard = kept_by_another(at);
    let (number, lease) = (guard.fencing_token(), guard.lease());
    // Each time: a lease that expired once may expire again.
    for _ in 0..3 {
        assert_eq!(guard.lost(), LossReason::Expired);
        assert_eq!((guard.valid_for(), lease.valid_for()), (None, None));
        let asked = Instant::now();
        let proved = guard.revalidate();
        let held = guard.ensure_held().and_then(|()| lease.ensure_held());
        // On a busy machine the answer may be older than the lease is long.
        if asked.elapsed() < ms(300) {
            proved.unwrap();
            held.unwrap();
        }
    }
    assert_eq!(guard.fencing_token(), number);
    eventually(LIMIT, "it is held for longer", || {
        guard.revalidate().is_ok() && guard.extend(secs(60)).is_ok()
    });
    assert!(guard.valid_for().unwrap() > secs(30) && lease.valid_for().unwrap() > secs(30));
    assert!(guard.ensure_held().is_ok() && lease.ensure_held().is_ok());
    guard.release().unwrap();
    assert!(!at.is_held());
    assert_eq!(lease.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Released));
}

pub(super) fn an_expired_lease_that_lost_its_key_is_not_revalidated(at: &Place) {
    let guard = shortly_held(at);
    assert_eq!(guard.lost(), LossReason::Expired);
    at.becomes_free();
    let lock = at.client().lock(&at.key).ttl(secs(60)).label("other");
    let other = lock.acquire().unwrap();
    at.all_catch_up(&lock);
    let proved = guard.revalidate();
    let Err(RevalidateError::NotHeld(Loss { reason: LossReason::Taken { holder }, .. })) = proved
    else {
        panic!("{proved:?}")
    };
    assert_eq!(holder.to_string(), "other");
    assert_eq!(other.ensure_held().map_err(|loss| loss.reason), Ok(()));
    other.release().unwrap();
    at.all_catch_up(&lock);
    let proved = guard.revalidate();
    assert!(
        matches!(proved, Err(RevalidateError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
        "{proved:?}"
    );
    assert!(!at.is_held(), "created again");
    // The first reason stays.
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Expired));
}

pub(super) fn a_lease_lost_for_another_reason_is_not_revalidated(at: &Place) {
    let lock = at.client().lock(&at.key);
    let guard = lock.acquire().unwrap();
    lock.force_release().unwrap();
    // It learns of that by asking.
    for _ in 0..2 {
        let proved = guard.revalidate();
        assert!(
            matches!(proved, Err(RevalidateError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
            "{proved:?}"
        );
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Gone));
        assert!(!at.is_held(), "created again");
    }
    let guard = at.client().lock(&at.key).ttl(secs(60)).max_hold(ms(200)).acquire().unwrap();
    assert_eq!(guard.lost(), LossReason::MaxHold);
    let proved = guard.revalidate();
    assert!(
        matches!(proved, Err(RevalidateError::NotHeld(Loss { reason: LossReason::MaxHold, .. }))),
        "{proved:?}"
    );
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::MaxHold));
}

pub(super) fn revalidating_a_held_lease_keeps_it(at: &Place) {
    let lock = at.client().lock(&at.key).ttl(secs(60)).max_ttl(secs(600));
    let guard = lock.acquire().unwrap();
    guard.revalidate().unwrap();
    assert!(guard.valid_for().unwrap() > secs(30));
    // What was extended is not shortened.
    guard.extend(secs(600)).unwrap();
    guard.revalidate().unwrap();
    assert!(guard.valid_for().unwrap() > secs(300));
    at.all_catch_up(&lock);
    assert!(at.ttl_left() > secs(300));
    guard.release().unwrap();
}
