//! Acquiring a lock.

use std::{thread, time::Instant};

use smol::block_on;
use tenure::blocking::Client;
use tenure_testkit::{Proxy, Server, ServerKind, eventually, unique_key};

use crate::{
    LIMIT, ms, ran_out, secs,
    servers::{any, exists, get, pttl},
};

/// Trap: without a setting the write-up's lock lives 500 ms.
#[test]
fn a_lock_without_settings_has_a_sane_ttl() {
    let key = unique_key("acquiring");
    let guard = Client::connect(&any().url()).unwrap().lock(&key).acquire().unwrap();
    let left = pttl(any(), &key);
    assert!(left > 5_000 && left <= 10_000, "{left}");
    guard.release().unwrap();
}

#[test]
fn resuming_ones_own_lock_raises_the_ttl_and_keeps_the_number() {
    let key = unique_key("again");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).ttl(secs(10)).acquire().unwrap();
    let value = get(any(), &key);
    let again = client.lock(&key).ttl(secs(60)).resume(guard.token().clone()).unwrap().unwrap();
    assert_eq!(again.fencing_token(), guard.fencing_token());
    assert_eq!(get(any(), &key), value);
    assert!(pttl(any(), &key) > 30_000);
    again.release().unwrap();
    assert!(!exists(any(), &key));
}

/// Trap: sleeping past the deadline, and taking the lock after it.
#[test]
fn a_timed_acquire_acquires_nothing_after_its_deadline() {
    let key = unique_key("acquiring");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key);
    let guard = lock.acquire().unwrap();
    for wait in [ms(0), ms(1), ms(35), ms(150)] {
        let began = Instant::now();
        let missed = lock.acquire_within(wait);
        assert!(ran_out(&missed), "{missed:?}");
        assert!(began.elapsed() >= wait);
    }
    let value = get(any(), &key);
    assert_eq!(value.text(), Some(guard.token().as_str()));
    guard.release().unwrap();
    // Nobody is left behind who would take it now.
    client.close().unwrap();
    assert!(!exists(any(), &key));
}

/// Trap: a wait that sleeps cannot be called off.
#[tokio::test]
async fn a_timed_acquire_can_be_cancelled_while_it_waits() {
    let key = unique_key("off");
    let holder = Client::connect(&any().url()).unwrap();
    let guard = holder.lock(&key).acquire().unwrap();
    let client = tenure::Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key);
    let waiting = tokio::spawn(async move { lock.acquire_within(secs(600)).await });
    tokio::time::sleep(ms(50)).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    guard.release().unwrap();
    client.close().await.unwrap();
    assert!(!exists(any(), &key));
}

/// Trap: a setter on a shared lock races with an acquire that is under way.
#[test]
fn a_ttl_set_for_one_call_affects_no_other() {
    let key = unique_key("acquiring");
    let client = Client::connect(&any().url()).unwrap();
    let shared = client.lock(&key).ttl(secs(20));
    let holder = shared.acquire().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| shared.acquire_within(secs(60)));
        // Another user of the same lock sets it to something else meanwhile.
        let other = shared.clone().ttl(secs(600));
        assert!(other.try_acquire().unwrap().is_none());
        holder.release().unwrap();
        let guard = waiting.join().unwrap().unwrap();
        assert!(pttl(any(), &key) <= 20_000);
        guard.extend(secs(600)).unwrap();
        assert!(pttl(any(), &key) > 500_000);
        guard.release().unwrap();
    });
}

/// Trap: the caller's cancelled context also cancels the clean-up.
#[test]
fn any_future_dropped_while_the_server_is_silent_leaves_no_key() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let client = tenure::Client::connect(&proxy.url()).unwrap();
    block_on(async { client.lock("warm").acquire().await.unwrap().release().await }).unwrap();
    proxy.delay(ms(30));
    let lock = client.lock("k").ttl(secs(600));
    // An acquisition that is on its way.
    drop(block_on(smol::future::poll_once(lock.acquire())));
    // A release, and an extension before it.
    let held = client.lock("held").ttl(secs(600));
    let guard = block_on(held.acquire()).unwrap();
    drop(block_on(smol::future::poll_once(guard.extend(secs(900)))));
    drop(block_on(smol::future::poll_once(guard.release())));
    // Work, whose future goes with the run's.
    let worked = client.lock("worked").ttl(secs(600));
    let run = worked.run(async |_| smol::Timer::after(secs(600)).await);
    block_on(smol::future::or(async { drop(run.await) }, async {
        smol::Timer::after(ms(200)).await;
    }));
    for key in ["k", "held", "worked", "warm"] {
        eventually(LIMIT, "nothing is left", || !exists(&server, key));
    }
    block_on(client.close()).unwrap();
    let left = server.cmd(&["KEYS", "*"]);
    assert!(left.array().iter().all(|key| key.text().unwrap().ends_with(":tenure.fence")));
}
