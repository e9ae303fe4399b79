//! Busy, cancelled, lost and unreachable are different results.

use smol::{block_on, future::poll_once};
use tenure::{
    AcquireError, InspectError, Loss, LossReason, ReleaseError, Renewal, blocking::Client,
};
use tenure_testkit::{Server, unique_key};

use crate::{LIMIT, ms, quorum::Nodes, secs};

/// Reproduces: one error for all that may go wrong, and a release that says "already taken" for a
/// lease that has ended.
#[test]
fn each_outcome_over_five_servers_has_its_own_result() {
    let (nodes, key) = (Nodes::start(5), unique_key("telling"));
    let client = nodes.client();
    let lock = client.lock(&key).ttl(secs(600)).label("me");
    let guard = lock.acquire().unwrap();
    // Taken.
    assert!(lock.try_acquire().unwrap().is_none());
    let missed = lock.acquire_within(ms(100));
    let Err(AcquireError::TimedOut { holder, .. }) = missed else { panic!("{missed:?}") };
    assert_eq!(holder.to_string(), "me");
    // Lost to another, and lost to nobody.
    let thief = client.lock(&key).ttl(secs(600)).label("thief").steal().unwrap();
    let late = guard.release();
    let Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { holder }, .. })) = late else {
        panic!("{late:?}")
    };
    assert_eq!(holder.to_string(), "thief");
    assert!(lock.force_release().unwrap().is_some());
    let late = thief.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Gone, .. }))),
        "{late:?}"
    );
    // Ended.
    let short = client.lock(&key).ttl(ms(300)).renewal(Renewal::Manual);
    let guard = short.acquire_within(LIMIT).unwrap();
    assert_eq!(guard.lost(), LossReason::Expired);
    nodes.becomes_free(&key);
    let late = guard.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Expired, .. }))),
        "{late:?}"
    );
    // Cancelled: nothing is reported, and nothing is left.
    let called_off = tenure::Client::connect(&nodes.urls()).unwrap();
    let acquiring = called_off.lock(&key).ttl(secs(600));
    drop(block_on(poll_once(acquiring.acquire())));
    block_on(called_off.close()).unwrap();
    nodes.becomes_free(&key);
    // The outcome is unknown.
    let guard = lock.acquire_within(LIMIT).unwrap();
    nodes.0[..3].iter().for_each(Server::kill);
    assert!(matches!(lock.try_acquire(), Err(AcquireError::NoQuorum(_))));
    let late = guard.release();
    assert!(matches!(late, Err(ReleaseError::Unconfirmed(_))), "{late:?}");
}

/// Reproduces: the error does not say whether the lock is held or the servers are down.
#[test]
fn an_outage_of_all_servers_is_not_contention() {
    let (nodes, key) = (Nodes::start(5), unique_key("telling"));
    nodes.0.iter().for_each(Server::kill);
    for client in [nodes.client(), Client::connect(&nodes.urls()).unwrap()] {
        let lock = client.lock(&key);
        for failed in [lock.try_acquire().map(drop), lock.acquire_within(ms(200)).map(drop)] {
            let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
            assert_eq!((none.granted, none.needed, none.failed.len()), (0, 3, 5), "{none:?}");
        }
        let unseen = lock.inspect();
        let Err(InspectError::Unanswered(errors)) = unseen else { panic!("{unseen:?}") };
        assert_eq!(errors.iter().count(), 5, "{errors}");
    }
}
