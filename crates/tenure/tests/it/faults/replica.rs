//! A replica, or a demoted primary, may have stale data and must not answer from it.

use tenure::{ExtendError, InspectError, NodeErrorKind, ReleaseError, blocking};
use tenure_testkit::{Server, eventually, unique_key};

use super::{LIMIT, connect, hold, is_free, kind_of, node_error, value, with_each_kind};

const TTL: std::time::Duration = std::time::Duration::from_secs(600);

fn demote(server: &Server) {
    // To a primary that is not there; writes are refused from here on, and the data stays.
    assert!(server.cmd(&["REPLICAOF", "127.0.0.1", "1"]).is_ok());
}

fn promote(server: &Server) {
    assert!(server.cmd(&["REPLICAOF", "NO", "ONE"]).is_ok());
}

/// A script whose condition is false writes nothing, so a replica runs it without a word. Each op
/// is the first one after the demotion: the connections that follow are refused at the greeting.
#[test]
fn a_demoted_primary_never_reports_a_lease_as_gone() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        for is_there in [true, false] {
            for ask in [extend as Ask, release, resume, release_by_force, acquire] {
                // The demoted one may lag: it does not have the key, and the primary does.
                let client = connect(&server.url());
                let guard = client.lock(unique_key("demoted")).ttl(TTL).acquire().unwrap();
                let lock = client.lock(guard.key().as_bytes()).ttl(TTL);
                if !is_there {
                    server.cmd(&["DEL".as_bytes(), guard.key().as_bytes()]);
                }
                demote(&server);
                if let Some(said) = ask(&lock, guard) {
                    assert_eq!(said, NodeErrorKind::ReadOnly, "{kind}");
                } else {
                    assert!(is_there, "{kind}");
                }
                promote(&server);
            }
        }
    });
}

/// What the server says to it; `None` when it says that another holds the lock, which it may.
type Ask = fn(&blocking::Lock, blocking::LockGuard) -> Option<NodeErrorKind>;

fn extend(_: &blocking::Lock, guard: blocking::LockGuard) -> Option<NodeErrorKind> {
    let Err(ExtendError::Unconfirmed(errors)) = guard.extend(TTL * 2) else { panic!("extended") };
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    Some(errors.first().kind())
}

fn release(_: &blocking::Lock, guard: blocking::LockGuard) -> Option<NodeErrorKind> {
    let released = guard.release();
    let Err(ReleaseError::Unconfirmed(errors)) = released else { panic!("said {released:?}") };
    Some(errors.first().kind())
}

fn resume(lock: &blocking::Lock, guard: blocking::LockGuard) -> Option<NodeErrorKind> {
    Some(kind_of(lock.resume(guard.token().clone())))
}

fn release_by_force(lock: &blocking::Lock, _: blocking::LockGuard) -> Option<NodeErrorKind> {
    match lock.force_release() {
        Err(InspectError::Unanswered(errors)) => Some(errors.first().kind()),
        other => panic!("said {other:?}"),
    }
}

fn acquire(lock: &blocking::Lock, _: blocking::LockGuard) -> Option<NodeErrorKind> {
    match lock.try_acquire() {
        Ok(None) => None,
        other => Some(kind_of(other)),
    }
}

/// Renewals in the background: not answered, and not the news of a loss.
#[test]
fn a_renewal_on_a_demoted_primary_loses_nothing() {
    let server = super::private().start();
    let client = connect(&server.url());
    let key = unique_key("renewed");
    let ttl = std::time::Duration::from_secs(5);
    let guard = client.lock(&key).ttl(ttl).acquire().unwrap();
    demote(&server);
    hold(ttl / 2);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()), "lost to a replica");
    promote(&server);
    hold(ttl);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
    assert!(is_free(&server, &key));
}

/// A real replica refuses at the greeting, and is asked again until it is the primary.
#[test]
fn a_replica_refuses_until_it_is_promoted() {
    let primary = super::private().args(["--repl-diskless-sync-delay", "0"]).start();
    let port = primary.port().unwrap().to_string();
    let replica = super::private().args(["--replicaof", "127.0.0.1", &port]).start();
    let key = unique_key("replica");
    let holder = connect(&primary.url());
    let guard = holder.lock(&key).ttl(TTL).acquire().unwrap();
    eventually(LIMIT, "it has the key too", || value(&replica, &key).is_some());
    let client = connect(&replica.url());
    let lock = client.lock(&key).ttl(TTL);
    let error = lock.try_acquire().unwrap_err();
    assert_eq!(node_error(&error).kind(), NodeErrorKind::ReadOnly);
    assert!(error.to_string().contains("could not determine"), "{error}");
    // Neither by force nor by its own token.
    assert!(client.lock(&key).force_release().is_err());
    assert_eq!(kind_of(lock.resume(guard.token().clone())), NodeErrorKind::ReadOnly);
    assert_eq!(value(&replica, &key).as_deref(), Some(guard.token().as_bytes()));

    promote(&replica);
    let resumed = lock.resume(guard.token().clone());
    let resumed = resumed.unwrap().expect("it was replicated");
    assert_eq!(resumed.fencing_token(), guard.fencing_token());
    resumed.release().unwrap();
    let next = lock.acquire_within(LIMIT).unwrap();
    assert!(next.fencing_token() > guard.fencing_token(), "a smaller number after a failover");
    // The old primary's holder still has its key there, and its own deadline.
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
}
