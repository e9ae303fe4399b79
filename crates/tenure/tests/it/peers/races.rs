//! Renewals, attempts and releases that overlap.

use std::{thread, time::Duration};

use tenure::blocking::Client;
use tenure_testkit::{Proxy, scale, unique_key};

use crate::{
    ms, secs,
    servers::{any, exists},
};

/// Reproduces: a lock got on a retry is never renewed, since the clean-up of the failed attempt
/// before it has cancelled what the renewal looks at.
#[test]
fn a_lock_acquired_after_failed_attempts_is_renewed() {
    let key = unique_key("races");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key).ttl(ms(2_500));
    let holder = lock.acquire().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| lock.acquire_within(secs(30)));
        thread::sleep(ms(150));
        holder.release().unwrap();
        let guard = waiting.join().unwrap().unwrap();
        thread::sleep(secs(6));
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
        guard.release().unwrap();
    });
}

/// Reproduces: an extension is under way while the lock is released, and makes the key again.
/// The network is slow, so both are on it at once, in either order.
#[test]
fn an_extension_concurrent_with_a_release_leaves_no_key() {
    let proxy = Proxy::to(any());
    let client = tenure::Client::connect(&proxy.url()).unwrap();
    let key = unique_key("races");
    let lock = client.lock(&key).ttl(secs(600));
    smol::block_on(async { lock.acquire().await.unwrap().release().await }).unwrap();
    for round in 0..scale(100, 1_000) {
        let guard = smol::block_on(lock.acquire()).unwrap();
        proxy.delay(Duration::from_micros(100 * (round as u64 % 8)));
        // Polled once, so it is sent before the release is.
        drop(smol::block_on(smol::future::poll_once(guard.extend(secs(900)))));
        smol::block_on(guard.release()).unwrap();
        proxy.delay(ms(0));
        assert!(!exists(any(), &key), "made again in round {round}");
    }
    smol::block_on(client.close()).unwrap();
    assert!(!exists(any(), &key));
}

/// As before, with renewals in place of extensions: the shortest TTL has one every 32 ms.
#[test]
fn a_renewal_concurrent_with_a_release_leaves_no_key() {
    let proxy = Proxy::to(any());
    let client = Client::connect(&proxy.url()).unwrap();
    let key = unique_key("renewal");
    let lock = client.lock(&key).ttl(ms(100));
    for round in 0..scale(60, 1_000) {
        proxy.delay(ms(0));
        // A busy machine may find the lock lost in between; then the next round has it again.
        let guard = lock.acquire_within(secs(20)).unwrap();
        proxy.delay(ms(round as u64 % 4));
        thread::sleep(ms(28 + round as u64 % 8));
        drop(guard.release());
        proxy.heal();
        lock.inspect().unwrap();
        assert!(!exists(any(), &key), "made again in round {round}");
    }
    client.close().unwrap();
    assert!(!exists(any(), &key));
}
