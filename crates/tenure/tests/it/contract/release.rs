//! Releasing: by word, by dropping, and too late.

use tenure::{Loss, LossReason, ReleaseError, Renewal, Token};

use super::place::Place;
use crate::{LIMIT, ms, secs};

pub(super) fn a_dropped_guard_releases(at: &Place) {
    // The client lives on, so it is not its end that releases.
    let client = at.client();
    let lock = client.lock(&at.key).ttl(secs(600));
    drop(lock.acquire().unwrap());
    at.becomes_free();
    // The end of the last handle waits until the release is written.
    let other = at.client();
    let guard = other.lock(&at.key).ttl(secs(600)).acquire().unwrap();
    drop(other);
    drop(guard);
    at.becomes_free();
}

pub(super) fn releasing_an_expired_lease_is_reported(at: &Place) {
    let client = at.client();
    let lock = client.lock(&at.key);
    let short = lock.clone().ttl(ms(60)).renewal(Renewal::Manual);
    let guard = short.acquire_within(LIMIT).unwrap();
    at.becomes_free();
    let late = guard.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Expired, .. }))),
        "{late:?}"
    );
    lock.acquire().unwrap().release().unwrap();
}

pub(super) fn a_release_after_a_takeover_names_the_new_holder_and_leaves_it_alone(at: &Place) {
    let client = at.client();
    let short = client.lock(&at.key).ttl(ms(60)).renewal(Renewal::Manual);
    let held = short.acquire_within(LIMIT).unwrap();
    at.all_catch_up(&short);
    at.becomes_free();
    let lock = at.client().lock(&at.key).label("next").ttl(secs(20));
    let other = lock.acquire().unwrap();
    at.all_catch_up(&lock);
    let late = held.release();
    let Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { holder }, .. })) = late else {
        panic!("{late:?}");
    };
    assert_eq!(holder.to_string(), "next");
    assert!(at.ttl_left() > secs(10));
    assert!(at.client().lock(&at.key).try_acquire().unwrap().is_none());
    other.release().unwrap();
}

pub(super) fn a_second_release_by_token_is_neither_a_loss_nor_contention(at: &Place) {
    let client = at.client();
    let lock = client.lock(&at.key).ttl(secs(60));
    let already = |token: &Token| {
        let again = lock.release(token);
        let is_already = matches!(again, Err(ReleaseError::AlreadyReleased { .. }));
        assert!(is_already, "{again:?}");
    };
    let token = lock.acquire().unwrap().detach();
    lock.release(&token).unwrap();
    already(&token);
    let other = lock.acquire().unwrap();
    already(&token);
    assert!(at.is_held(), "another's key was touched");
    // A release that came too late gave nothing up, however often it is repeated.
    let stranger: Token = format!("{:032x}@stranger", 7).parse().unwrap();
    let held_by_another = || {
        let late = lock.release(&stranger);
        let Err(ReleaseError::NotHeld(Loss { reason, .. })) = late else { panic!("{late:?}") };
        assert!(matches!(reason, LossReason::Taken { .. }), "{reason}");
    };
    held_by_another();
    held_by_another();
    other.release().unwrap();
    at.becomes_free();
    let late = lock.release(&stranger);
    let Err(ReleaseError::NotHeld(Loss { reason, .. })) = late else { panic!("{late:?}") };
    assert_eq!(reason, LossReason::Gone);
}
