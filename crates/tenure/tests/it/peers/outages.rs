//! The holder is notified in time.

use std::{thread, time::Instant};

use tenure::{Loss, LossReason, ReleaseError, RunError, blocking::Client};
use tenure_testkit::{Proxy, Server, ServerKind, eventually};

use crate::{LIMIT, ms, secs, servers::exists};

/// Reproduces: the server dies under a holder; extensions are retried past the end, and the abort
/// comes late.
#[test]
fn a_holder_whose_server_dies_is_notified_before_the_lease_ends() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let ttl = secs(5);
    let began = Instant::now();
    let guard = client.lock("k").ttl(ttl).acquire().unwrap();
    server.kill();
    assert_eq!(guard.lost(), LossReason::Expired);
    // From before the request until after the news: the key could not have ended by then.
    let passed = began.elapsed();
    assert!(passed < ttl, "{passed:?}");
    assert_eq!(guard.valid_for(), None);
    // The news is final, though the server comes back.
    server.start_again();
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Err(LossReason::Expired));
    let late = guard.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::Expired, .. }))),
        "{late:?}"
    );
}

/// Reproduces: the release at the end fails, and its error takes the place of the work's own.
#[test]
fn a_failed_release_does_not_hide_the_output_of_the_work() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    let blocking = Client::connect(&proxy.url()).unwrap();
    let lock = blocking.lock("k").ttl(secs(600));
    let work = || {
        proxy.refuse();
        proxy.cut();
        Err::<u8, _>("the work's own error")
    };
    let ended = lock.run(|_| work());
    let Err(RunError::Release { error: ReleaseError::Unconfirmed(_), output }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(output, Err("the work's own error"));
    proxy.heal();
    eventually(LIMIT, "it is released after all", || !exists(&server, "k"));

    let client = tenure::Client::connect(&proxy.url()).unwrap();
    let lock = client.lock("k").ttl(secs(600));
    let ended = smol::block_on(lock.run(async |_| work()));
    let Err(RunError::Release { error: ReleaseError::Unconfirmed(_), output }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(output, Err("the work's own error"));
    proxy.heal();
    eventually(LIMIT, "it is released after all", || !exists(&server, "k"));
}

/// Async work is dropped at its next await, and then the loss is all there is.
#[test]
fn a_loss_stops_the_work() {
    struct Dropped<'a>(&'a std::cell::Cell<bool>);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let server = Server::start(ServerKind::Redis70);
    let client = tenure::Client::connect(&server.url()).unwrap();
    let dropped = std::cell::Cell::new(false);
    let lock = client.lock("k").ttl(ms(1_500));
    let ended = smol::block_on(lock.run(async |_| {
        let _dropped = Dropped(&dropped);
        assert_eq!(server.cmd(&["DEL", "k"]).int(), 1);
        std::future::pending::<()>().await;
    }));
    assert!(dropped.get());
    let Err(RunError::Lost { loss, output: None, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(loss.reason, LossReason::Gone);
    assert!(!exists(&server, "k"));
}

/// Reproduces: a loss is not reported, and a holder that is stuck is renewed without end.
#[test]
fn max_hold_notifies_a_stuck_holder_and_ends_its_renewal() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let guard = client.lock("k").ttl(ms(2_500)).max_hold(ms(4_000)).acquire().unwrap();
    let lease = guard.lease();
    let told = thread::spawn(move || smol::block_on(lease.lost()));
    // It is renewed up to then: this is longer than a TTL.
    assert_eq!(told.join().unwrap(), LossReason::MaxHold);
    assert!(exists(&server, "k"), "the holder has time to stop");
    let mut monitor = server.monitor();
    eventually(LIMIT, "the key ends", || !exists(&server, "k"));
    let token = guard.token().as_str();
    assert!(monitor.so_far().iter().all(|line| !line.contains(token)), "renewed after the end");
    let late = guard.release();
    assert!(
        matches!(late, Err(ReleaseError::NotHeld(Loss { reason: LossReason::MaxHold, .. }))),
        "{late:?}"
    );
}
