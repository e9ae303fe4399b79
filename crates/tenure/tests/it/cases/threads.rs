//! Holders that block, panic, or leak their guard.

use std::thread;

use tenure::{Client, LossReason};
use tenure_testkit::{eventually, unique_key};

use crate::{
    LIMIT, ms, secs,
    servers::{any, exists, get},
};

/// Reproduces: a runtime with one thread; the task that holds the lock blocks it for several TTLs,
/// so a renewal on that runtime never runs.
#[tokio::test(flavor = "current_thread")]
async fn code_that_blocks_its_executor_does_not_starve_the_renewal() {
    let key = unique_key("threads");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).ttl(ms(2_500)).acquire().await.unwrap();
    let value = get(any(), &key);
    thread::sleep(secs(6));
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    assert_eq!(get(any(), &key), value);
    guard.release().await.unwrap();
}

/// Reproduces: the task that holds the lock panics, and its lock is renewed without end.
#[tokio::test]
async fn a_task_that_panics_releases() {
    let key = unique_key("threads");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key).ttl(secs(600));
    let task = tokio::spawn(async move {
        let guard = lock.acquire().await.unwrap();
        panic!("as planned, with {}", guard.key());
    });
    assert!(task.await.unwrap_err().is_panic());
    eventually(LIMIT, "it is released", || !exists(any(), &key));
}

/// A guard that is leaked is renewed, as documented, but not for longer than the longest hold.
#[test]
fn a_leaked_guard_is_bounded_by_max_hold() {
    let key = unique_key("leak");
    let client = tenure::blocking::Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key).ttl(ms(2_500)).max_hold(secs(4));
    let guard = lock.acquire_within(LIMIT).unwrap();
    let lease = guard.lease();
    std::mem::forget(guard);
    thread::sleep(secs(3));
    assert!(exists(any(), &key), "a leaked guard is renewed");
    assert_eq!(smol::block_on(lease.lost()), LossReason::MaxHold);
    eventually(LIMIT, "its key ends", || !exists(any(), &key));
    // And it is in nobody's way.
    lock.acquire().unwrap().release().unwrap();
}
