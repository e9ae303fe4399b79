//! Taking a lock from its holder, and releasing it for them.

use tenure::{Holder, LossReason};

use super::place::Place;
use crate::{ms, secs};

/// A renewal comes after a third of this, and the end long after that.
const TTL: u64 = 3_000;

pub(super) fn a_stolen_lock_is_lost_to_its_new_holder(at: &Place) {
    let old = at.client().lock(&at.key).ttl(ms(TTL)).acquire().unwrap();
    let new = at.client().lock(&at.key).ttl(secs(20)).label("thief").steal().unwrap();
    assert!(new.fencing_token() > old.fencing_token());
    let reason = old.lost();
    let LossReason::Taken { holder } = &reason else { panic!("{reason:?}") };
    assert_eq!(holder.to_string(), "thief");
    assert_eq!(old.ensure_held().map_err(|loss| loss.reason), Err(reason));
    assert_eq!(old.valid_for(), None);
    drop(old);
    assert_eq!(new.ensure_held().map_err(|loss| loss.reason), Ok(()));
    // The old holder's renewals and its release leave the new holder's key alone.
    assert!(at.ttl_left() > secs(10));
    new.release().unwrap();
    // A free lock is stolen like any other.
    at.client().lock(&at.key).steal().unwrap().release().unwrap();
}

pub(super) fn a_lock_released_by_force_is_lost_to_its_holder(at: &Place) {
    let guard = at.client().lock(&at.key).ttl(ms(TTL)).acquire().unwrap();
    at.client().lock(&at.key).force_release().unwrap();
    assert_eq!(guard.lost(), LossReason::Gone);
    assert!(!at.is_held(), "made again by a renewal");
}

pub(super) fn force_release_names_the_holder(at: &Place) {
    let lock = at.client().lock(&at.key).label("worker 7");
    let guard = lock.acquire().unwrap();
    let Some(Holder::Tenure(label)) = lock.force_release().unwrap() else { panic!("nobody?") };
    assert_eq!(label.to_string(), "worker 7");
    assert!(!at.is_held());
    assert_eq!(lock.force_release().unwrap(), None);
    drop(guard);
}
