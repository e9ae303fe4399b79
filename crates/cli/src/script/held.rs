//! `tenure extend` and `tenure release`: what the holder of a token may do.

use tenure::{
    AcquireError, Loss, LossReason, ReleaseError,
    blocking::{Lock, Renewal},
};

use super::blocking_lock;
use crate::{
    acquire::described,
    args::{ExtendArgs, ReleaseArgs, TOKEN},
    exit,
    failure::{Failure, indeterminate, of_config},
    messages::say,
};

/// Has the lock end later.
///
/// # Errors
///
/// A [`Failure`] that distinguishes "not held", "held by another" and "unknown".
pub(crate) fn extend(wanted: &ExtendArgs) -> Result<u8, Failure> {
    let key = &wanted.lock.shown;
    let lock = blocking_lock(&wanted.lock)?.ttl(wanted.ttl).renewal(Renewal::Manual);
    let what = format!("could not determine whether the lock {key} is extended");
    match lock.resume(wanted.token.clone()) {
        Ok(Some(guard)) => {
            // The resumption has raised the TTL: that was all.
            drop(guard.detach());
            Ok(0)
        }
        Ok(None) => Err(not_ours(&lock, "extended", key)),
        Err(AcquireError::Config { error, .. }) => Err(of_config(&error)),
        Err(error) => Err(indeterminate(&what, &error)),
    }
}

/// Releases the lock. That an earlier release has done so already is said, and is no failure.
///
/// # Errors
///
/// As [`extend`].
pub(crate) fn release(wanted: &ReleaseArgs) -> Result<u8, Failure> {
    let key = &wanted.lock.shown;
    let lock = blocking_lock(&wanted.lock)?;
    let Some(token) = &wanted.token else {
        let holder = match lock.inspect() {
            Ok(inspection) => described(&inspection)
                .map_or_else(|| "nobody holds it".to_owned(), |holder| format!("held by {holder}")),
            Err(_) => "its holder is unknown".to_owned(),
        };
        let what = format!("the lock {key} is not released without its token; {holder}");
        return Err(Failure::new(exit::USAGE, what).hint(TOKEN));
    };
    match lock.release(token) {
        Ok(()) => Ok(0),
        Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { holder }, .. })) => {
            Err(others("released", key, &holder.to_string()))
        }
        Err(ReleaseError::NotHeld(_)) => Err(nobodys("released", key)),
        Err(ReleaseError::AlreadyReleased { .. }) => {
            say(&format!("the lock {key} is already released, with this token"));
            Ok(0)
        }
        Err(ReleaseError::Config { error, .. }) => Err(of_config(&error)),
        Err(error) => Err(indeterminate(
            &format!("could not determine whether the lock {key} is released"),
            &error,
        )),
    }
}

/// The token does not hold the lock: does another?
fn not_ours(lock: &Lock, what: &str, key: &str) -> Failure {
    match lock.inspect() {
        Ok(inspection) => described(&inspection)
            .map_or_else(|| nobodys(what, key), |holder| others(what, key, &holder)),
        Err(error) => {
            indeterminate(&format!("the lock {key} is not {what}: who holds it is unknown"), &error)
        }
    }
}

fn others(what: &str, key: &str, holder: &str) -> Failure {
    let what = format!("the lock {key} is not {what}: it is held by another, {holder}");
    Failure::new(exit::BUSY, what).hint("what was done after it ended may have overlapped theirs")
}

fn nobodys(what: &str, key: &str) -> Failure {
    let what = format!("the lock {key} is not {what}: it is not held any more");
    Failure::new(exit::NO, what).hint("it ended with its TTL, or was released before")
}
