//! Work under a lock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tenure::{AcquireError, LossReason, RunError, Wait};

use super::{place::Place, subject::Way};
use crate::secs;

pub(super) fn run_returns_the_output_of_the_work(at: &Place) {
    let lock = at.client().lock(&at.key);
    let output = lock.run(|lease| {
        assert!(at.is_held());
        assert_eq!(lease.ensure_held().map_err(|loss| loss.reason), Ok(()));
        (lease.key().clone(), 42)
    });
    let (key, answer) = output.unwrap();
    assert_eq!((key.as_bytes(), answer), (at.key.as_bytes(), 42));
    assert!(!at.is_held());
    // The work's own failure is an output like any other.
    let failed: Result<u8, &str> = lock.run(|_| Err("no money")).unwrap();
    assert_eq!(failed, Err("no money"));
    assert!(!at.is_held());
}

pub(super) fn a_loss_during_the_work_is_reported(at: &Place) {
    let lock = at.client().lock(&at.key);
    let ended = lock.run(|_| {
        at.client().lock(&at.key).force_release().unwrap();
        42
    });
    let Err(RunError::Lost { loss, output, .. }) = ended else { panic!("{ended:?}") };
    // The work was over before anybody noticed, in both ways: its output is not thrown away.
    assert_eq!((loss.reason, output), (LossReason::Gone, Some(42)));
    assert!(!at.is_held());
}

pub(super) fn a_panic_in_the_work_releases(at: &Place) {
    let client = at.client();
    let lock = client.lock(&at.key).ttl(secs(600));
    let work = || lock.run(|_| panic!("as planned, {:?}", Way::Async));
    let caught: Result<Result<(), RunError<()>>, _> = catch_unwind(AssertUnwindSafe(work));
    assert!(caught.is_err());
    at.becomes_free();
}

pub(super) fn work_does_not_begin_without_the_lock(at: &Place) {
    let guard = at.client().lock(&at.key).acquire().unwrap();
    let lock = at.client().lock(&at.key).wait(Wait::No);
    let refused = lock.run(|_| panic!("the work began"));
    let timed_out = matches!(refused, Err(RunError::Acquire(AcquireError::TimedOut { .. })));
    assert!(timed_out, "{refused:?}");
    guard.release().unwrap();
}
