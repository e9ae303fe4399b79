//! What is renewed, and for how long.

use std::thread;

use tenure::{Loss, LossReason, ReleaseError, Wait, blocking::Client};
use tenure_testkit::{Proxy, Server, ServerKind, eventually, scale};

use crate::{
    LIMIT, ms, secs,
    servers::{exists, get, pttl, scripts},
};

/// Reproduces: acquire and release many times over, and then with the key deleted in between:
/// what renewed stays behind each time.
#[test]
fn a_released_lock_is_never_renewed() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let lock = client.lock("k").ttl(ms(1_200));
    for _ in 0..scale(500, 10_000) {
        lock.acquire_within(LIMIT).unwrap().release().unwrap();
    }
    for _ in 0..scale(100, 1_000) {
        let guard = lock.acquire_within(LIMIT).unwrap();
        assert_eq!(server.cmd(&["DEL", "k"]).int(), 1);
        let gone = guard.release();
        assert!(
            matches!(gone, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
            "{gone:?}"
        );
    }
    for _ in 0..20 {
        drop(lock.acquire_within(LIMIT).unwrap());
    }
    eventually(LIMIT, "the last one is released", || !exists(&server, "k"));
    let mut monitor = server.monitor();
    // Renewals would come every 396 ms.
    thread::sleep(ms(1_300));
    let sent = monitor.so_far();
    assert!(sent.is_empty(), "after the last release: {sent:?}");
    assert_eq!(connections(&server), 1, "one connection for all of it");
}

/// Connections to a server by the library.
fn connections(server: &Server) -> usize {
    let list = server.cmd(&["CLIENT", "LIST"]);
    list.text().unwrap().lines().filter(|line| line.contains(" name=tenure ")).count()
}

/// Reproduces: a cut and an outage shorter than what is left of the lease, and then another one.
/// The first error ends the renewal permanently, or the failures of both add up.
#[test]
fn outages_shorter_than_the_lease_lose_nothing() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let client = Client::connect(&proxy.url()).unwrap();
    let guard = client.lock("k").ttl(secs(5)).acquire().unwrap();
    let (value, number) = (get(&server, "k"), guard.fencing_token());
    for _ in 0..2 {
        // Until a renewal has come through again: only then is the next outage another one.
        proxy.refuse();
        proxy.cut();
        thread::sleep(ms(1_200));
        let before = pttl(&server, "k");
        proxy.heal();
        eventually(LIMIT, "it is renewed again", || pttl(&server, "k") > before);
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    }
    assert_eq!(get(&server, "k"), value);
    assert_eq!(guard.fencing_token(), number);
    guard.release().unwrap();
}

/// A caller that waits outlasts an outage too, within its wait.
#[test]
fn a_waiting_caller_survives_an_outage() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let client = Client::connect(&proxy.url()).unwrap();
    for wait in [Wait::Within(secs(60)), Wait::Forever] {
        assert!(server.cmd(&["SET", "k", "theirs", "PX", "60000"]).is_ok());
        let lock = client.lock("k").wait(wait);
        let before = scripts(&server);
        let waiter = thread::spawn(move || lock.acquire());
        // A second try follows the reply to the first, which says that the lock is held.
        eventually(LIMIT, "it waits", || scripts(&server) > before + 1);
        proxy.refuse();
        proxy.cut();
        thread::sleep(ms(300));
        assert!(!waiter.is_finished(), "gave up during the outage");
        proxy.heal();
        assert_eq!(server.cmd(&["DEL", "k"]).int(), 1);
        waiter.join().unwrap().unwrap().release().unwrap();
    }
}

/// Reproduces: the first lock's renewals fail during a cut, and it expires. Later the same name is
/// acquired again, and never renewed: the state of a dead renewal was kept by name.
#[test]
fn after_a_loss_the_next_lease_of_the_same_name_is_renewed() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let client = Client::connect(&proxy.url()).unwrap();
    let lock = client.lock("k").ttl(ms(2_500));
    let first = lock.acquire().unwrap();
    proxy.black_hole();
    assert_eq!(first.lost(), LossReason::Expired);
    eventually(LIMIT, "the key ends", || !exists(&server, "k"));
    proxy.heal();
    let second = lock.acquire_within(LIMIT).unwrap();
    // The first guard lives on, in every way that might be confused with the second.
    thread::sleep(secs(6));
    assert_eq!(second.ensure_held().map_err(|loss| loss.reason), Ok(()));
    assert_eq!(get(&server, "k").text(), Some(second.token().as_str()));
    assert_eq!(first.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Expired));
    drop(first);
    second.release().unwrap();
    assert!(!exists(&server, "k"));
}
