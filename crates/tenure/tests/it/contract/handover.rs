//! Leases that go from one guard to another by their token.

use tenure::{Holder, LossReason, ReleaseError, Renewal, Token};

use super::place::Place;
use crate::{LIMIT, ms, secs};

pub(super) fn a_detached_lease_is_resumed_by_another_client(at: &Place) {
    // The table in memory lives as long as one of its clients.
    let client = at.client();
    let guard = client.lock(&at.key).ttl(secs(20)).acquire().unwrap();
    let (number, lease) = (guard.fencing_token(), guard.lease());
    let printed = guard.detach().as_str().to_owned();
    assert_eq!(lease.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Released));
    assert!(at.is_held(), "detaching is no release");
    let token: Token = printed.parse().unwrap();
    let lock = at.client().lock(&at.key).ttl(secs(60));
    let guard = lock.resume(token).unwrap().expect("it is held by this token");
    assert_eq!(guard.fencing_token(), number);
    assert_eq!(guard.token().as_str(), printed);
    assert!(at.ttl_left() > secs(30), "the TTL is raised");
    assert!(guard.valid_for().unwrap() > secs(30));
    guard.release().unwrap();
    assert!(!at.is_held());
}

pub(super) fn a_lease_is_resumed_while_its_guard_lives(at: &Place) {
    let first = at.client().lock(&at.key).ttl(secs(60)).acquire().unwrap();
    let lock = at.client().lock(&at.key).ttl(secs(5));
    let second = lock.resume(first.token().clone()).unwrap().expect("held by this token");
    assert_eq!(second.fencing_token(), first.fencing_token());
    assert!(at.ttl_left() > secs(30), "a shorter TTL does not lower it");
    second.release().unwrap();
    // Two guards on one token are one lease: the first release ends it for both.
    let late = first.release();
    assert!(matches!(late, Err(ReleaseError::AlreadyReleased { .. })), "{late:?}");
}

pub(super) fn a_lease_that_has_ended_is_not_resumed(at: &Place) {
    let client = at.client();
    let lock = client.lock(&at.key).ttl(ms(50)).renewal(Renewal::Manual);
    let token = lock.acquire_within(LIMIT).unwrap().detach();
    at.becomes_free();
    assert!(lock.resume(token).unwrap().is_none());
    assert!(!at.is_held(), "acquired again");
}

pub(super) fn a_token_that_holds_nothing_resumes_nothing(at: &Place) {
    let client = at.client();
    let token = client.lock(format!("{}-other", at.key)).acquire().unwrap().detach();
    let guard = client.lock(&at.key).ttl(secs(20)).label("holder").acquire().unwrap();
    let before = guard.fencing_token();
    let lock = at.client().lock(&at.key).ttl(secs(60));
    assert!(lock.resume(token).unwrap().is_none());
    let after = at.inspect();
    let held = after.held.unwrap();
    assert!(matches!(held.holder, Holder::Tenure(label) if label.to_string() == "holder"));
    assert!(held.ttl_left.get().unwrap() <= secs(20), "raised by a stranger's token");
    assert_eq!(after.last_number, Some(before));
    guard.release().unwrap();
}
