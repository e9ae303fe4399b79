//! Extending: it raises the TTL, never lowers it, and never creates a key.

use std::time::{Duration, Instant};

use tenure::{ConfigError, ExtendError, Loss, LossReason, Renewal};

use super::place::Place;
use crate::{LIMIT, ms, secs};

pub(super) fn an_extension_raises_the_ttl(at: &Place) {
    let lock = at.client().lock(&at.key).max_ttl(secs(60));
    let guard = lock.acquire().unwrap();
    guard.extend(secs(60)).unwrap();
    at.all_catch_up(&lock);
    assert!(at.ttl_left() > secs(30) && at.ttl_left() <= secs(60));
    assert!(guard.valid_for().unwrap() > secs(30));
    assert!(guard.valid_for().unwrap() <= ms(60_000 - 602));
    guard.release().unwrap();
}

pub(super) fn an_extension_never_shortens(at: &Place) {
    let lock = at.client().lock(&at.key).ttl(secs(60));
    for renewal in [Renewal::Background, Renewal::Manual] {
        let guard = lock.clone().renewal(renewal).acquire().unwrap();
        guard.extend(secs(2)).unwrap();
        assert!(at.ttl_left() > secs(30));
        assert!(guard.valid_for().unwrap() > secs(30));
        guard.release().unwrap();
    }
}

/// An extension by less than the TTL moves no renewal past the end.
pub(super) fn a_lease_extended_briefly_is_renewed_in_time(at: &Place) {
    let guard = at.client().lock(&at.key).ttl(secs(3)).acquire_within(LIMIT).unwrap();
    let began = Instant::now();
    while began.elapsed() < secs(4) {
        match guard.extend(ms(50)) {
            // On a busy machine.
            Ok(()) | Err(ExtendError::Unconfirmed(_)) => {}
            Err(error) => panic!("after {:?}: {error}", began.elapsed()),
        }
        std::thread::sleep(ms(200));
    }
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
}

pub(super) fn an_invalid_ttl_is_refused_before_anything_is_sent(at: &Place) {
    let guard = at.client().lock(&at.key).ttl(secs(60)).acquire().unwrap();
    for (ttl, words) in [
        (Duration::ZERO, "the TTL is zero"),
        (Duration::from_micros(999), "999µs is below 1ms"),
        (ms(9), "9ms is below the least allowed, 10ms"),
        (ms((1 << 53) + 1), "over the most allowed, 2^53 ms"),
        (Duration::MAX, "over the most allowed, 2^53 ms"),
    ] {
        let refused = guard.extend(ttl);
        let Err(ExtendError::Config { error: ConfigError::Ttl(error), .. }) = refused else {
            panic!("{ttl:?}: {refused:?}");
        };
        assert!(error.to_string().contains(words), "{error}");
        assert!(at.ttl_left() > secs(30), "changed by {ttl:?}");
    }
    guard.release().unwrap();
}

pub(super) fn a_lost_lease_is_neither_extended_nor_recreated(at: &Place) {
    let guard = at.client().lock(&at.key).acquire().unwrap();
    at.client().lock(&at.key).force_release().unwrap();
    for _ in 0..2 {
        let refused = guard.extend(secs(20));
        assert!(
            matches!(refused, Err(ExtendError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
            "{refused:?}"
        );
        assert!(!at.is_held());
    }
    assert_eq!(guard.valid_for(), None);
}
