//! Who owns the lock, and who may change it.

use std::{
    thread,
    time::{Duration, Instant},
};

use tenure::{ExtendError, Loss, LossReason, ReleaseError, Renewal, blocking::Client};
use tenure_testkit::{Proxy, Server, ServerKind, eventually, unique_key};

use crate::{
    LIMIT, ms, secs,
    servers::{any, exists, get, pttl},
};

fn client() -> Client {
    Client::connect(&any().url()).unwrap()
}

/// Reproduces: A's lease ends, B acquires, A releases: B's lock is deleted, and C gets in.
#[test]
fn a_late_release_leaves_the_next_holder_alone() {
    let key = unique_key("ownership");
    let a =
        client().lock(&key).ttl(ms(150)).renewal(Renewal::Manual).acquire_within(LIMIT).unwrap();
    let b = client().lock(&key).ttl(secs(60)).label("b").acquire_within(secs(20)).unwrap();
    let late = a.release();
    let Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { holder }, .. })) = late else {
        panic!("{late:?}")
    };
    assert_eq!(holder.to_string(), "b");
    assert_eq!(get(any(), &key).text(), Some(b.token().as_str()));
    assert!(pttl(any(), &key) > 30_000);
    assert!(client().lock(&key).try_acquire().unwrap().is_none(), "C got in");
    b.release().unwrap();
}

/// Reproduces: A's renewals are on their way when its lease ends; B acquires; they arrive.
/// Without an owner check they overwrite B's value, or raise B's TTL without end.
#[test]
fn a_late_renewal_leaves_the_next_holder_alone() {
    let key = unique_key("ownership");
    let proxy = Proxy::to(any());
    let a = Client::connect(&proxy.url()).unwrap().lock(&key).ttl(secs(2)).acquire().unwrap();
    // From here on A's requests stay on the way until the network heals.
    proxy.delay_requests(secs(60));
    assert_eq!(a.lost(), LossReason::Expired);
    // Shorter than A's, so that a renewal of A's would lift it.
    let lock = client().lock(&key).ttl(secs(1)).renewal(Renewal::Manual);
    let b = lock.acquire_within(secs(20)).unwrap();
    proxy.heal();
    // The replies come after A's renewals, and A is notified.
    let late = a.release();
    assert!(matches!(late, Err(ReleaseError::NotHeld(_))), "{late:?}");
    let left = pttl(any(), &key);
    assert!(left <= 1_000, "A lifted B's TTL to {left} ms");
    let value = get(any(), &key);
    assert!(value.is_nil() || value.text() == Some(b.token().as_str()), "{value:?}");
    // B is not renewed, so it ends on time: nobody else renews it either.
    assert_eq!(b.lost(), LossReason::Expired);
    eventually(LIMIT, "B's lease ends", || !exists(any(), &key));
}

/// Reproduces: a crash between SETNX and EXPIRE.
/// The steps are one command, as `value_and_ttl_are_set_in_one_command_of_one_script` shows; here
/// the TTL is there at any moment of a lock's life, and ends it when its holder is cut off.
#[test]
fn a_disconnected_holder_leaves_a_key_that_expires() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let client = Client::connect(&proxy.url()).unwrap();
    let guard = client.lock("k").ttl(secs(1)).acquire_within(LIMIT).unwrap();
    assert!(pttl(&server, "k") > 0);
    guard.extend(secs(2)).unwrap();
    assert!(pttl(&server, "k") > 0);
    proxy.black_hole();
    let lock = Client::connect(&server.url()).unwrap().lock("k");
    let next = lock.acquire_within(secs(20)).unwrap();
    assert!(pttl(&server, "k") > 0);
    next.release().unwrap();
    assert!(!exists(&server, "k"));
    proxy.heal();
    drop(guard);
}

/// Reproduces: the key is deleted under a holder that works on, and whose renewals are silent.
#[test]
fn a_holder_whose_key_is_gone_is_notified_and_creates_no_new_one() {
    let key = unique_key("ownership");
    let guard = client().lock(&key).ttl(ms(1_500)).acquire().unwrap();
    let lease = guard.lease();
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
    assert_eq!(guard.lost(), LossReason::Gone);
    assert_eq!(lease.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Gone));
    assert!(!exists(any(), &key));
    let refused = guard.extend(secs(20));
    assert!(
        matches!(refused, Err(ExtendError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
        "{refused:?}"
    );
    let refused = guard.release();
    assert!(
        matches!(refused, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
        "{refused:?}"
    );
    thread::sleep(ms(500));
    assert!(!exists(any(), &key), "made again");
}

/// Reproduces: a holder gets no reply until its lease has ended (a pause, a partition); another
/// acquires meanwhile; the first goes on working.
#[test]
fn a_holder_without_replies_loses_its_lease_by_the_local_clock() {
    let key = unique_key("ownership");
    let proxy = Proxy::to(any());
    let ttl = secs(3);
    let began = Instant::now();
    let a = Client::connect(&proxy.url()).unwrap().lock(&key).ttl(ttl).acquire().unwrap();
    proxy.black_hole();
    assert_eq!(a.lost(), LossReason::Expired);
    // No server had to answer, and the key cannot have ended before.
    let passed = began.elapsed();
    assert!(passed < ttl, "{passed:?}");
    let b = client().lock(&key).acquire_within(secs(20)).unwrap();
    assert!(b.fencing_token() > a.fencing_token(), "the resource can tell them apart");
    proxy.heal();
    assert!(a.release().is_err());
    assert_eq!(get(any(), &key).text(), Some(b.token().as_str()));
    b.release().unwrap();
}

/// Reproduces: the server forgets everything (a restart without its data, FLUSHALL), or a replica
/// that never had the key takes over. Another gets the lock at once; the first must notice.
#[test]
fn a_holder_notices_that_the_server_lost_its_data() {
    type Forget = fn(&Server);
    let ways: [(&str, Forget); 2] = [
        ("a restart", Server::restart_empty),
        ("a flush", |server| assert!(server.cmd(&["FLUSHALL"]).is_ok())),
    ];
    for (name, forget) in ways {
        let server = Server::start(ServerKind::Redis70);
        let a = Client::connect(&server.url()).unwrap().lock("k").ttl(secs(3)).acquire().unwrap();
        forget(&server);
        let client = Client::connect(&server.url()).unwrap();
        let b = client.lock("k").label("b").acquire_within(secs(20)).unwrap();
        assert!(b.fencing_token() > a.fencing_token(), "{name}");
        let reason = a.lost();
        assert!(matches!(reason, LossReason::Taken { .. }), "{name}: {reason:?}");
        drop(a);
        assert_eq!(b.ensure_held().map_err(|loss| loss.reason), Ok(()), "{name}");
        b.release().unwrap();
        // Nobody keeps a lock that others can never take.
        client.lock("k").acquire().unwrap().release().unwrap();
    }
}

/// The replica: it has the lock's key no more than a primary that never saw it.
#[test]
fn a_holder_notices_a_failover_that_lost_its_key() {
    let primary = Server::builder(ServerKind::Redis70).tcp().start();
    let replica = Server::builder(ServerKind::Redis70).tcp().start();
    let proxy = Proxy::to(&primary);
    let a = Client::connect(&proxy.url()).unwrap().lock("k").ttl(secs(3)).acquire().unwrap();
    // The endpoint leads to the other server from here on: the same client, another primary.
    assert!(primary.cmd(&["FLUSHALL"]).is_ok());
    let port = replica.port().unwrap().to_string();
    assert!(primary.cmd(&["REPLICAOF", "127.0.0.1", &port]).is_ok());
    // A primary that was made a replica says so, and is no ground to believe in the lease.
    let reason = a.lost();
    assert!(matches!(reason, LossReason::Gone | LossReason::Expired), "{reason:?}");
    let b = Client::connect(&replica.url()).unwrap().lock("k").acquire().unwrap();
    assert!(b.fencing_token() > a.fencing_token());
    assert!(a.release().is_err());
    b.release().unwrap();
}

/// A pause of the whole process is the same to it: what counts is the clock, read when asked.
#[test]
fn validity_is_read_from_the_clock_and_not_from_a_timer() {
    let lock = client().lock(unique_key("clock")).ttl(ms(300)).renewal(Renewal::Manual);
    let guard = lock.acquire_within(LIMIT).unwrap();
    let first = guard.valid_for().unwrap();
    assert!(first <= ms(300 - 5), "{first:?}");
    let began = Instant::now();
    thread::sleep(ms(50));
    let later = guard.valid_for().unwrap_or(Duration::ZERO);
    assert!(later <= first.saturating_sub(ms(50)), "{first:?}, then {later:?}");
    thread::sleep(ms(300).saturating_sub(began.elapsed()));
    assert_eq!(guard.valid_for(), None);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Expired));
}
