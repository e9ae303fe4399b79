//! `tenure status`.

use tenure::{InspectError, Inspection};

use super::{blocking_lock, print};
use crate::{
    acquire::{described, held_for, seconds, waiting_for},
    args::Status,
    exit,
    failure::{Failure, chain, untold},
    json::Object,
};

/// Says who holds the lock, and who waits for it.
///
/// # Errors
///
/// A [`Failure`] when it cannot be told.
pub(crate) fn status(wanted: &Status) -> Result<u8, Failure> {
    let key = &wanted.target.shown;
    let inspection = blocking_lock(&wanted.target)?.inspect().map_err(|error| match error {
        InspectError::Config(error) => Failure::new(exit::USAGE, chain(&error)),
        error => untold(&format!("cannot tell whether the lock {key} is held"), &error),
    })?;
    let line = if wanted.json {
        json(&wanted.target.key.to_string_lossy(), &inspection)
    } else {
        words(&inspection)
    };
    // The exit code says it, too.
    _ = print(&line);
    Ok(if inspection.held.is_some() { 0 } else { exit::NO })
}

/// Who has it, and who waits for it, in the order in which they get it.
fn words(inspection: &Inspection) -> String {
    let holder = described(inspection);
    let mut text = holder.map_or_else(|| "free".to_owned(), |holder| format!("held by {holder}"));
    text.push('\n');
    for waiter in &inspection.waiters {
        let since = waiting_for(waiter.ticket).map(|since| format!(" for {}", seconds(since)));
        text += &format!("{} waits{}\n", waiter.holder, since.unwrap_or_default());
    }
    let listed = u64::try_from(inspection.waiters.len()).unwrap_or(u64::MAX);
    let more = inspection.waiting.saturating_sub(listed);
    if more > 0 {
        text += &format!("{more} more wait\n");
    }
    text
}

fn json(key: &str, inspection: &Inspection) -> String {
    let Inspection { held, last_number, waiters, waiting } = inspection;
    let holder = held.as_ref().map(|held| held.holder.to_string());
    let left = held.as_ref().and_then(|held| held.ttl_left.get());
    let since = held.as_ref().and_then(|held| held_for(&held.holder, *last_number));
    let ms = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Object::new()
        .text("key", Some(key))
        .flag("held", held.is_some())
        .text("holder", holder.as_deref())
        .flag("foreign", held.as_ref().is_some_and(|held| held.holder.is_foreign()))
        .number("ttl_ms", left.map(ms))
        .number("held_ms", since.map(ms))
        .number("last_fence", last_number.map(tenure::FencingToken::get))
        .number("waiting", Some(*waiting))
        .objects(
            "waiters",
            waiters.iter().map(|waiter| {
                Object::new()
                    .text("holder", Some(&waiter.holder.to_string()))
                    .number("waiting_ms", waiting_for(waiter.ticket).map(ms))
            }),
        )
        .line()
}
