//! Waiting for the lock, until it is held or a signal comes.

use std::{ffi::OsStr, pin::pin, time::Duration};

use tenure::{AcquireError, Inspection, Lock, LockGuard, NodeError, NodeErrorKind, TtlLeft};

use crate::{
    child::reap_orphans,
    events::{Event, Events},
    exit,
    failure::{self, Failure},
    messages::say,
    system::Moment,
};

/// What the tool prints while it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitReporting<'a> {
    /// The lock's key, as it is shown.
    pub(crate) key: &'a str,
    /// The exit code when another holds the lock.
    pub(crate) busy: u8,
    /// Say that the tool waits, and for whom.
    pub(crate) verbose: bool,
    /// A command around this one holds a lock at the same key.
    pub(crate) nested: bool,
}

/// Whether the environment says that a command around this one holds this lock.
pub(crate) fn is_nested(key: &OsStr) -> bool {
    std::env::var_os("TENURE_KEY").is_some_and(|outer| outer == key)
}

/// Acquires the lock, unless a signal ends the wait. Dropping the future then undoes it, and
/// dropping the client waits until that is on its way.
///
/// # Errors
///
/// A [`Failure`] that distinguishes "held by another", "unknown" and a signal.
pub(crate) fn acquire(
    lock: &Lock,
    events: &mut Events,
    reporting: WaitReporting<'_>,
) -> Result<LockGuard, Failure> {
    let mut acquiring = pin!(lock.acquire());
    // What the wait is for is asked beside it: servers that hang answer late, and neither the lock
    // nor a signal waits for them.
    let mut report = pin!(report_waiting(lock, reporting));
    let (mut report_at, mut is_reporting) = (Some(Moment::now() + NOTICE), false);
    loop {
        match events.poll(acquiring.as_mut()) {
            Some(Ok(guard)) => return Ok(guard),
            Some(Err(error)) => return Err(not_acquired(lock, events, &error, reporting)),
            None => {}
        }
        if is_reporting {
            is_reporting = events.poll(report.as_mut()).is_none();
        }
        match events.next(report_at) {
            // As the first process of a container the tool is the parent of all orphans there.
            Some(Event::Signal(signal_hook::consts::SIGCHLD)) => reap_orphans(),
            Some(Event::Signal(signal)) => return Err(Failure::silent(exit::of_signal(signal))),
            Some(Event::Woken) => {}
            None => (report_at, is_reporting) = (None, true),
        }
    }
}

/// Says what is waited for, where somebody wants to know or would not guess.
async fn report_waiting(lock: &Lock, reporting: WaitReporting<'_>) {
    let WaitReporting { key, nested, verbose, .. } = reporting;
    let now = held(lock).await;
    let ttl_left = now.as_ref().and_then(|now| now.held.as_ref()).map(|held| held.ttl_left);
    // A wait for it may have no end either.
    let endless = ttl_left == Some(TtlLeft::Never);
    if verbose || nested || endless {
        let holder = now.as_ref().and_then(described);
        let holder =
            holder.map_or_else(String::new, |holder| format!(", which is held by {holder}"));
        let own =
            if nested { "; TENURE_KEY says that the command around this one has it" } else { "" };
        say(&format!("waiting for the lock {key}{holder}{own}"));
    }
    if let Some(trouble) = trouble(lock, reporting).await {
        say(&format!("waiting for the lock {key}: {trouble}"));
    }
}

fn not_acquired(
    lock: &Lock,
    events: &mut Events,
    error: &AcquireError,
    reporting: WaitReporting<'_>,
) -> Failure {
    let WaitReporting { key, busy, .. } = reporting;
    match error {
        AcquireError::Config { error, .. } => failure::of_config(error),
        AcquireError::TimedOut { holder: last, waited, .. } => {
            let now = events.block_on(held(lock));
            let holder = now.as_ref().and_then(described).unwrap_or_else(|| last.to_string());
            let waited = match waited.as_millis() {
                0..100 => String::new(),
                _ => format!(" after a wait of {}", seconds(*waited)),
            };
            let what = format!("the lock {key} is held by {holder}{waited}");
            let holder =
                now.and_then(|now| now.held).map_or_else(|| last.clone(), |held| held.holder);
            Failure { holder: Some(holder), ..Failure::new(busy, what) }
        }
        AcquireError::NotALock { found, .. } => {
            let what = format!("the key {key} cannot be a lock: it holds {found}");
            let failure = Failure::new(exit::NOT_A_LOCK, what).hint("name another key");
            Failure { holder: Some(found.clone()), ..failure }
        }
        error => failure::indeterminate(
            &format!("could not determine whether the lock {key} is free"),
            error,
        ),
    }
}

/// The holder of the lock and since when it holds it, if there is one and a server knows.
async fn held(lock: &Lock) -> Option<Inspection> {
    lock.inspect().await.ok()
}

/// Why one of several servers would not vote on the lock now, if one would not. One that may not
/// vote yet is reported in any case: else a wait for a free lock would be a riddle.
async fn trouble(lock: &Lock, reporting: WaitReporting<'_>) -> Option<String> {
    use NodeErrorKind as Kind;
    let nodes = lock.nodes().await.ok().filter(|nodes| nodes.len() > 1)?;
    let is_reported = |error: &&NodeError| {
        reporting.verbose || matches!(error.kind(), Kind::Restarted | Kind::ClockStepped)
    };
    let mut troubles = nodes.iter().filter_map(|node| node.trouble.as_ref());
    troubles.find(is_reported).map(|error| failure::chain(error))
}

/// A holder for people: the label, and how long it has held and may hold the lock.
pub(crate) fn described(inspection: &Inspection) -> Option<String> {
    let held = inspection.held.as_ref()?;
    let mut text = held.holder.to_string();
    if let Some(since) = inspection.held_for() {
        text.push_str(&format!(" for {}", seconds(since)));
    }
    match held.ttl_left {
        TtlLeft::Ends(left) => {
            text.push_str(&format!(" (ends in {} unless renewed)", seconds(left)));
        }
        TtlLeft::Never => text.push_str(" (without a TTL: it never ends by itself)"),
    }
    Some(text)
}

/// A span for people: two digits behind the point are enough.
pub(crate) fn seconds(span: Duration) -> String {
    match span.as_secs() {
        0..60 => format!("{:.1} s", span.as_secs_f64()),
        60..7_200 => format!("{} min", span.as_secs() / 60),
        hours => format!("{} h", hours / 3_600),
    }
}

/// A wait shorter than this is not worth a word.
const NOTICE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        for (ms, text) in [(0, "0.0 s"), (1_234, "1.2 s"), (90_000, "1 min"), (10_800_000, "3 h")] {
            assert_eq!(seconds(Duration::from_millis(ms)), text);
        }
    }
}
