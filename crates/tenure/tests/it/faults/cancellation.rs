//! A future that is dropped, at any moment.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use tenure::Client;
use tenure_testkit::{Proxy, eventually, scale, unique_key};

use super::{LIMIT, eventually_free, is_free, ms, shared};

/// Long, so that a key that is gone was taken away and has not ended.
const TTL: Duration = Duration::from_secs(600);

/// Polled not at all, once, and longer and longer: before the request is sent, while it is on its
/// way, while the answer is, and after it is here.
#[tokio::test]
async fn an_acquisition_dropped_at_any_moment_leaves_no_key() {
    let proxy = Proxy::to(shared());
    proxy.delay(ms(2));
    let client = Client::connect(&proxy.url()).unwrap();
    let keys: Vec<_> = (0..scale(40, 200)).map(|_| unique_key("dropped")).collect();
    for (round, key) in keys.iter().enumerate() {
        let lock = client.lock(key).ttl(TTL);
        let mut acquire = Box::pin(lock.acquire());
        match round % 4 {
            // A future that was never polled has asked for nothing.
            0 => {}
            1 => drop(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()))),
            _ => {
                let patience = Duration::from_micros(200 * round as u64 % 8_000);
                drop(tokio::time::timeout(patience, acquire.as_mut()).await);
            }
        }
        drop(acquire);
    }
    for key in &keys {
        eventually_free(shared(), key);
    }
    // What was dropped before it was sent must not be sent now.
    client.close().await.unwrap();
    assert!(keys.iter().all(|key| is_free(shared(), key)), "a key came later");
}

/// A caller that waits for another's lock has set nothing, and will not.
#[tokio::test]
async fn a_dropped_wait_acquires_nothing_later() {
    let key = unique_key("dropped-wait");
    let holder = Client::connect(&shared().url()).unwrap();
    let guard = holder.lock(&key).ttl(TTL).acquire().await.unwrap();
    let client = Client::connect(&shared().url()).unwrap();
    let lock = client.lock(&key).ttl(TTL);
    for wait in [0, 1, 5, 20] {
        let outcome = tokio::time::timeout(ms(wait), lock.acquire()).await;
        assert!(outcome.is_err(), "taken from its holder");
    }
    guard.release().await.unwrap();
    client.close().await.unwrap();
    assert!(is_free(shared(), &key));
}

/// The answer is in the hands of a future that nobody polls any more: still nobody holds the lock.
#[tokio::test]
async fn a_grant_that_no_caller_receives_is_released() {
    let client = Client::connect(&shared().url()).unwrap();
    let key = unique_key("not-picked-up");
    let lock = client.lock(&key).ttl(TTL);
    {
        let mut acquire = pin!(lock.acquire());
        let first = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(first.is_pending());
        eventually(LIMIT, "the grant", || !is_free(shared(), &key));
    }
    eventually_free(shared(), &key);
}

/// With the server out of reach the release waits for it, longer than any one op would.
#[tokio::test]
async fn a_key_dropped_during_an_outage_is_removed_after_it() {
    let proxy = Proxy::to(shared());
    let client = Client::connect(&proxy.url()).unwrap();
    let key = unique_key("dropped-in-an-outage");
    let lock = client.lock(&key).ttl(TTL);
    // Granted, and the answer lost on the way; then nothing gets through any more.
    proxy.drop_replies();
    {
        let mut acquire = pin!(lock.acquire());
        let first = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(first.is_pending());
        eventually(LIMIT, "the key", || !is_free(shared(), &key));
        proxy.black_hole();
    }
    proxy.heal();
    eventually_free(shared(), &key);
}
