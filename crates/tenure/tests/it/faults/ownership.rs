//! Nobody touches another's key, and a holder learns that its own is gone.

use std::thread;

use tenure::{ExtendError, Loss, LossReason, ReleaseError, Renewal, Wait, blocking};
use tenure_testkit::{Proxy, Server, scale, unique_key};

use super::{
    LIMIT, TTL, connect, eventually_free, hold, is_free, ms, private, shared, value, when_lost,
};
use crate::{quorum::all_catch_up, servers};

/// Ends by itself soon: nobody renews it.
fn short(client: &blocking::Client, key: &str) -> blocking::Lock {
    client.lock(key).ttl(ms(30)).renewal(Renewal::Manual).wait(Wait::Within(LIMIT))
}

/// Whatever the holder does after its lease ended, and whenever: the next one's key stays.
#[test]
fn a_former_holder_never_touches_the_next_holders_key() {
    let client = connect(&shared().url());
    let other = connect(&shared().url());
    for round in 0..scale(40, 10_000) {
        let key = unique_key("next");
        let late = short(&client, &key).acquire().unwrap();
        let next = match round % 2 {
            0 => other.lock(&key).wait(Wait::Within(LIMIT)).acquire().unwrap(),
            _ => other.lock(&key).steal().unwrap(),
        };
        assert!(next.fencing_token() > late.fencing_token());
        let ours = Some(next.token().as_bytes().to_vec());
        if round % 3 == 0 {
            drop(late);
        } else {
            match late.extend(ms(60_000)) {
                Err(ExtendError::NotHeld(Loss {
                    reason: LossReason::Taken { .. } | LossReason::Expired,
                    ..
                })) => {}
                other => panic!("extended by a former holder: {other:?}"),
            }
            match late.release() {
                Err(ReleaseError::NotHeld(Loss {
                    reason: LossReason::Taken { holder }, ..
                })) => {
                    assert!(!holder.is_foreign());
                }
                other => panic!("released by a former holder: {other:?}"),
            }
        }
        assert_eq!(value(shared(), &key), ours);
        assert!(next.release().is_ok(), "its key was touched");
    }
}

/// "Not held any more" and "unknown" are two results.
#[test]
fn an_unanswered_release_is_unconfirmed_and_not_a_loss() {
    let proxy = Proxy::to(shared());
    let client = connect(&proxy.url());
    let key = unique_key("unconfirmed");
    let guard = client.lock(&key).acquire().unwrap();
    proxy.black_hole();
    match guard.release() {
        Err(ReleaseError::Unconfirmed(error)) => {
            assert!(error.to_string().contains(&format!("127.0.0.1:{}", proxy.port())));
        }
        other => panic!("nobody answered: {other:?}"),
    }
    assert!(!is_free(shared(), &key));
    proxy.heal();
    eventually_free(shared(), &key);
}

/// The second release of a lease is no loss.
#[test]
fn releasing_twice_reports_already_released() {
    let client = connect(&shared().url());
    let key = unique_key("twice");
    let token = client.lock(&key).acquire().unwrap().detach();
    let first = client.lock(&key).resume(token.clone()).unwrap().expect("still held");
    let second = client.lock(&key).resume(token).unwrap().expect("still held");
    assert!(first.release().is_ok());
    let late = second.release();
    assert!(matches!(late, Err(ReleaseError::AlreadyReleased { .. })), "{late:?}");
}

/// Deleted, flushed, released by force: lost at the next renewal at the latest, not renewed,
/// not released, and not created again.
#[test]
fn a_deleted_key_is_a_loss_and_is_not_recreated() {
    whatever_removes_it_is_a_loss(|| vec![private().start()]);
}

/// From a majority of these nodes.
pub(crate) fn whatever_removes_it_is_a_loss(start: impl Fn() -> Vec<Server> + Sync) {
    let delete = |server: &Server, key: &str| drop(server.cmd(&["DEL", key]));
    let flush = |server: &Server, _: &str| drop(server.cmd(&["FLUSHALL"]));
    let force = |server: &Server, key: &str| {
        assert!(connect(&server.url()).lock(key).force_release().unwrap().is_some());
    };
    thread::scope(|scope| {
        scope.spawn(|| is_lost_and_stays_away(&start(), delete));
        scope.spawn(|| is_lost_and_stays_away(&start(), flush));
        scope.spawn(|| is_lost_and_stays_away(&start(), force));
    });
}

fn is_lost_and_stays_away(nodes: &[Server], remove: impl Fn(&Server, &str)) {
    let (key, robbed) = (unique_key("removed"), &nodes[..=nodes.len() / 2]);
    // No renewal comes between the first that is removed and the last.
    let lock = connect(&servers::quorum(nodes)).lock(&key).ttl(TTL * 5);
    let guard = lock.acquire_within(LIMIT).unwrap();
    all_catch_up(&lock);
    robbed.iter().for_each(|node| remove(node, &key));
    assert_eq!(when_lost(&guard), LossReason::Gone);
    assert_eq!((guard.valid_for(), guard.lost()), (None, LossReason::Gone));
    // Over several renewals' time nothing is sent for it any more.
    let mut monitors: Vec<_> = robbed.iter().map(Server::monitor).collect();
    hold(TTL * 4);
    let is_free = || robbed.iter().all(|node| is_free(node, &key));
    assert!(is_free(), "created again");
    for monitor in &mut monitors {
        let sent = monitor.so_far();
        assert!(!sent.iter().any(|line| line.contains("EVAL")), "renewed: {sent:?}");
    }
    assert!(matches!(
        guard.release(),
        Err(ReleaseError::NotHeld(Loss { reason: LossReason::Gone, .. }))
    ));
    assert!(is_free(), "created again");
    nodes.iter().for_each(|node| eventually_free(node, &key));
}

#[test]
fn a_stolen_key_is_a_loss_to_the_new_holder() {
    let client = connect(&shared().url());
    let key = unique_key("taken");
    let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
    let thief = connect(&shared().url()).lock(&key).label("thief").steal().unwrap();
    let reason = when_lost(&guard);
    let LossReason::Taken { holder } = &reason else { panic!("lost to nobody: {reason}") };
    assert!(holder.to_string().contains("thief"), "{holder}");
    assert!(matches!(
        guard.release(),
        Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { .. }, .. }))
    ));
    assert!(thief.ensure_held().is_ok());
    assert!(thief.release().is_ok());
}

/// A stranger's value of any type at the key: another's, and left as it is.
#[test]
fn an_overwritten_key_belongs_to_the_foreign_holder() {
    let client = connect(&shared().url());
    for (what, command) in [("string", "SET"), ("list", "RPUSH")] {
        let key = unique_key("overwritten");
        let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
        shared().cmd(&["DEL", &key]);
        shared().cmd(&[command, &key, "a stranger's"]);
        // Between the two a renewal may find no key at all.
        let reason = when_lost(&guard);
        assert!(matches!(reason, LossReason::Taken { .. } | LossReason::Gone), "{reason}");
        match guard.release() {
            Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { holder }, .. })) => {
                assert!(holder.is_foreign(), "{holder}");
            }
            other => panic!("a stranger holds it: {other:?}"),
        }
        let mut raw = shared().raw();
        assert_eq!(raw.cmd(&["TYPE", &key]).text(), Some(what));
        assert_eq!(raw.cmd(&["PTTL", &key]).int(), -1, "given a TTL");
        raw.cmd(&["DEL", &key]);
    }
}
