//! `tenure acquire`.

use tenure::Renewal;

use super::{lock, print};
use crate::{
    acquire::{self as waiting, Manner, seconds},
    args::Acquire,
    events::Events,
    exit,
    failure::{Failure, say},
    json::Object,
};

/// Acquires the lock, prints the token, and leaves the lock to its TTL and to whoever has that.
///
/// # Errors
///
/// A [`Failure`] when the lock is not acquired, or the token cannot be printed.
pub(crate) fn acquire(wanted: &Acquire) -> Result<u8, Failure> {
    let mut events = Events::watch().map_err(|error| {
        Failure::new(exit::CANNOT_TELL, format!("cannot watch for signals: {error}"))
    })?;
    let (_client, lock) = lock(&wanted.target)?;
    let mut lock = lock.ttl(wanted.ttl).wait(wanted.wait).renewal(Renewal::Manual);
    if let Some(longest) = wanted.longest_ttl {
        lock = lock.longest_ttl(longest);
    }
    if let Some(label) = &wanted.label {
        lock = lock.label(label);
    }
    let key = wanted.target.shown.as_str();
    let nested = waiting::is_nested(&wanted.target.key);
    let manner = Manner { key, busy: wanted.busy, verbose: wanted.verbose, nested };
    let guard = waiting::acquire(&lock, &mut events, manner)?;
    let number = guard.fencing_token();
    let ttl_ms = u64::try_from(wanted.ttl.as_millis()).ok();
    let line = if wanted.json {
        let token = Some(guard.token().as_str());
        let object = Object::new().text("token", token).number("fence", Some(number.get()));
        object.number("ttl_ms", ttl_ms).line()
    } else {
        format!("{}\n", guard.token().as_str())
    };
    if let Err(error) = print(&line) {
        // Nobody knows the token, so nobody could release the lock: dropping the guard does.
        let what = format!("cannot print the token of the lock {key}: {error}");
        return Err(Failure::new(exit::USAGE, what).hint("the lock is released again"));
    }
    if wanted.verbose {
        say(&format!("acquired the lock {key} for {}, number {number}", seconds(wanted.ttl)));
    }
    drop(guard.detach());
    Ok(0)
}
