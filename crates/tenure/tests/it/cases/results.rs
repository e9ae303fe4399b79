//! The results of acquire, wait and release.

use std::thread;

use tenure::blocking::Client;
use tenure::{
    AcquireError, Loss, LossReason, NodeErrorKind, ReleaseError, Renewal, RunError, Wait,
};
use tenure_testkit::{Proxy, Server, ServerKind, eventually, unique_key};

use crate::{
    LIMIT, ms, ran_out, secs,
    servers::{any, exists, get},
};

/// Reproduces: the wait runs out, and the body runs without the lock.
/// A guard is only inside `Ok`, and `run` has nothing to give to the work without one.
#[test]
fn nothing_runs_after_a_wait_that_timed_out() {
    let key = unique_key("results");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).acquire().unwrap();
    let lock = client.lock(&key).wait(Wait::Within(ms(80)));
    assert!(lock.acquire().is_err());
    let ended = lock.run(|_| panic!("the body ran"));
    let Err(RunError::Acquire(error)) = ended else { panic!("{ended:?}") };
    assert!(ran_out(&Err::<(), _>(error)));
    assert_eq!(get(any(), &key).text(), Some(guard.token().as_str()));
    guard.release().unwrap();
}

/// Reproduces: busy, called off, and a dead server all come back as the same error.
#[test]
fn busy_cancelled_and_unreachable_are_three_results() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let holder = Client::connect(&server.url()).unwrap().lock("k").label("h").acquire().unwrap();
    let client = Client::connect(&proxy.url()).unwrap();
    let lock = client.lock("k");
    // Busy: how long, and who.
    assert!(ran_out(&lock.acquire_within(ms(80))));
    let busy = lock.acquire_within(ms(0)).unwrap_err();
    let AcquireError::TimedOut { holder: who, .. } = &busy else { panic!("{busy:?}") };
    assert_eq!(who.to_string(), "h");
    // The client is closed during the wait.
    let other = Client::connect(&proxy.url()).unwrap();
    let waiting = other.lock("k");
    let accepted = proxy.accepted();
    let waiter = thread::spawn(move || waiting.acquire());
    eventually(LIMIT, "it asks", || proxy.accepted() > accepted);
    other.close().unwrap();
    let closed = waiter.join().unwrap();
    assert!(matches!(closed, Err(AcquireError::EngineStopped { .. })), "{closed:?}");
    // The server dies during the wait.
    let waiter = thread::spawn(move || lock.acquire_within(ms(700)));
    thread::sleep(ms(100));
    proxy.refuse();
    proxy.cut();
    let dead = waiter.join().unwrap().unwrap_err();
    let AcquireError::NoQuorum(none) = &dead else { panic!("{dead:?}") };
    let kind = none.failed[0].kind();
    let told = matches!(kind, NodeErrorKind::Unreachable | NodeErrorKind::Disconnected);
    assert!(told, "{dead:?}");
    proxy.heal();
    assert_eq!(get(&server, "k").text(), Some(holder.token().as_str()));
    holder.release().unwrap();
    client.close().unwrap();
    assert!(!exists(&server, "k"));
}

/// Reproduces: a release after the end returns false and no error, or throws something untyped;
/// the second one throws again; and local state stops the same process from acquiring again.
#[test]
fn a_release_after_expiry_is_reported_and_blocks_nobody() {
    let key = unique_key("results");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key).ttl(ms(60)).renewal(Renewal::Manual);
    let guard = lock.acquire_within(LIMIT).unwrap();
    eventually(LIMIT, "it ends", || !exists(any(), &key));
    let lease = guard.lease();
    let late = guard.release();
    // A second release of the same guard does not compile: the first has taken it.
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Expired, .. }))),
        "{late:?}"
    );
    assert_eq!(
        lease.ensure_held().map_err(|loss| loss.reason),
        Err(LossReason::Expired),
        "the first reason stays"
    );
    // Dropping one that has ended is no error either.
    let guard = lock.acquire_within(LIMIT).unwrap();
    eventually(LIMIT, "it ends", || !exists(any(), &key));
    drop(guard);
    // Another process, and this one.
    Client::connect(&any().url()).unwrap().lock(&key).acquire().unwrap().release().unwrap();
    client.lock(&key).acquire().unwrap().release().unwrap();
    assert!(client.lock(&key).ttl(secs(5)).try_acquire().unwrap().is_some());
}
