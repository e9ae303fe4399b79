//! `tenure acquire`.

use std::time::Duration;

use tenure::Renewal;

use super::lock;
use crate::{
    acquire::{self as waiting, WaitReporting, seconds},
    args::AcquireArgs,
    events::Events,
    exit,
    failure::{Failure, cannot_watch},
    json::Object,
    messages::say,
    output::{Output, print},
    system::Moment,
};

/// Acquires the lock, prints the token, and leaves the lock to its TTL and the token's owner.
///
/// # Errors
///
/// A [`Failure`] when the lock is not acquired, or the token cannot be printed.
pub(crate) fn acquire(wanted: &AcquireArgs) -> Result<u8, Failure> {
    let mut events = Events::watch().map_err(cannot_watch)?;
    let (_client, lock) = lock(&wanted.lock)?;
    let mut lock = lock.ttl(wanted.ttl).wait(wanted.wait).renewal(Renewal::Manual);
    if let Some(longest) = wanted.max_ttl {
        lock = lock.max_ttl(longest);
    }
    if let Some(longest) = wanted.node_limit {
        lock = lock.node_limit(longest);
    }
    if let Some(label) = &wanted.label {
        lock = lock.label(label);
    }
    let key = wanted.lock.shown.as_str();
    let nested = waiting::is_nested(&wanted.lock.key);
    let reporting = WaitReporting { key, busy: wanted.busy, verbose: wanted.verbose, nested };
    let guard = waiting::acquire(&lock, &mut events, reporting)?;
    let number = guard.fencing_token();
    let ttl_ms = u64::try_from(wanted.ttl.as_millis()).ok();
    let line = if wanted.json {
        let token = Some(guard.token().as_str());
        let object = Object::new().text("token", token).number("fence", Some(number.get()));
        object.number("ttl_ms", ttl_ms).line()
    } else {
        format!("{}\n", guard.token().as_str())
    };
    let until = Moment::now() + guard.valid_for().unwrap_or_default().max(MIN_PRINTING);
    let failure = match print(line, &mut events, until) {
        Output::Written => None,
        Output::Failed(error) => {
            let code = exit::of_system(&error, exit::NOT_WRITTEN);
            Some(Failure::new(code, format!("cannot print the token of the lock {key}: {error}")))
        }
        Output::Signal(signal) => Some(Failure::silent(exit::of_signal(signal))),
    };
    if let Some(failure) = failure {
        // Nobody knows the token, so nobody else could release the lock.
        let hint = match events.block_on(guard.release()) {
            Ok(()) => "the lock is released again",
            Err(_) => "the release is not confirmed, so the lock ends with its TTL",
        };
        return Err(failure.hint(hint));
    }
    if wanted.verbose {
        say(&format!("acquired the lock {key} for {}, number {number}", seconds(wanted.ttl)));
    }
    drop(guard.detach());
    Ok(0)
}

/// A reader that is there takes a line sooner, on a busy machine too. A shorter lease has ended by
/// then, which does no harm.
const MIN_PRINTING: Duration = Duration::from_secs(1);
