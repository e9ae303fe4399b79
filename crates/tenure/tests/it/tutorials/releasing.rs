//! Releasing a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tenure::{Loss, LossReason, ReleaseError, Renewal, blocking::Client};
use tenure_testkit::{Proxy, eventually, unique_key};

use crate::{
    LIMIT, ms, secs,
    servers::{any, exists, get},
};

/// Trap: true or false, where there are four outcomes.
#[test]
fn each_outcome_of_a_release_has_its_own_result() {
    let key = unique_key("releasing");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key);
    lock.acquire().unwrap().release().unwrap();

    let short = lock.clone().ttl(ms(60)).renewal(Renewal::Manual);
    let expired = short.acquire_within(LIMIT).unwrap();
    eventually(LIMIT, "it ends", || !exists(any(), &key));
    let late = expired.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Expired, .. }))),
        "{late:?}"
    );

    let deleted = lock.acquire().unwrap();
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
    let late = deleted.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
        "{late:?}"
    );

    let robbed = lock.acquire().unwrap();
    let thief = lock.steal().unwrap();
    let late = robbed.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { .. }, .. }))),
        "{late:?}"
    );
    assert_eq!(get(any(), &key).text(), Some(thief.token().as_str()));
    thief.release().unwrap();
}

/// Trap: a release that had no reply is not "false".
#[test]
fn a_release_without_a_reply_is_unconfirmed() {
    let key = unique_key("silent");
    let proxy = Proxy::to(any());
    let client = Client::connect(&proxy.url()).unwrap();
    let guard = client.lock(&key).ttl(secs(600)).acquire().unwrap();
    proxy.drop_next_replies_then_cut(1);
    let unsure = guard.release();
    assert!(matches!(unsure, Err(ReleaseError::Unconfirmed(_))), "{unsure:?}");
    eventually(LIMIT, "it was still released", || !exists(any(), &key));
}

/// Trap: a `defer` that releases what was never acquired, so that another's key is deleted.
#[test]
fn a_caller_that_never_had_the_lock_releases_nothing() {
    let key = unique_key("releasing");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).acquire().unwrap();
    let value = get(any(), &key);
    {
        let missed = client.lock(&key).try_acquire().unwrap();
        assert!(missed.is_none());
        // Dropped here, as every outcome is: there is no guard in it.
    }
    drop(client.lock(&key).acquire_within(ms(30)).unwrap_err());
    client.lock(unique_key("barrier")).acquire().unwrap().release().unwrap();
    assert_eq!(get(any(), &key), value);
    guard.release().unwrap();
}

/// Trap: a panic between taking the lock and releasing it.
#[test]
fn a_panic_releases_the_lock() {
    let key = unique_key("panic");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key).ttl(secs(600));
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let guard = lock.acquire().unwrap();
        panic!("as planned, with {}", guard.key());
    }));
    assert!(caught.is_err());
    eventually(LIMIT, "it is released", || !exists(any(), &key));
}
