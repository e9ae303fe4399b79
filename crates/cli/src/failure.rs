//! The one line that says what failed, on which server, why, and what to try.

use std::{error::Error, io, process::ExitCode};

use tenure::{
    AcquireError, ConfigError, Holder, InspectError, NodeError, NodeErrorKind, ReleaseError, Shown,
};

use crate::{exit, messages::say};

/// Why the tool ends by a code of its own, and what it says about it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code; see [`crate::exit`].
    pub(crate) code: u8,
    /// What is said; `None` when the code says it all.
    pub(crate) message: Option<String>,
    /// The holder of the lock, if that is the reason.
    pub(crate) holder: Option<Holder>,
}

impl Failure {
    /// A failure that is said.
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: Some(message.into()), holder: None }
    }

    /// A failure that the user caused and knows of.
    pub(crate) fn silent(code: u8) -> Self {
        Self { code, message: None, holder: None }
    }

    /// Adds what to try.
    pub(crate) fn hint(mut self, hint: &str) -> Self {
        if let Some(message) = &mut self.message {
            message.push_str("; ");
            message.push_str(hint);
        }
        self
    }

    /// Says it on standard error, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        self.say();
        ExitCode::from(self.code)
    }

    /// Says it on standard error.
    pub(crate) fn say(&self) {
        if let Some(message) = &self.message {
            say(message);
        }
    }
}

/// The system has no way left to learn of signals.
pub(crate) fn cannot_watch(error: io::Error) -> Failure {
    let code = exit::of_system(&error, exit::NO_RESOURCES);
    Failure::new(code, format!("cannot watch for signals: {error}"))
}

/// A client or a setting that is not possible.
pub(crate) fn of_config(error: &ConfigError) -> Failure {
    let code = match error {
        ConfigError::Engine { .. } => exit::NO_RESOURCES,
        _ => exit::USAGE,
    };
    Failure::new(code, chain(error))
}

/// An error and what is behind it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut before = text.clone();
    let mut source = error.source();
    while let Some(error) = source {
        let words = error.to_string();
        // Some errors repeat what is behind them, and some what is before them.
        if !text.ends_with(&words) && !words.ends_with(&before) {
            text.push_str(": ");
            text.push_str(&words);
        }
        before = words;
        source = error.source();
    }
    text
}

/// A failure because servers did not do their part; `what` is what cannot be done.
pub(crate) fn indeterminate(what: &str, error: &(dyn Error + 'static)) -> Failure {
    let nodes = nodes_errors(error);
    // What a server says names the server; what stands above it says what `what` says.
    let said: Vec<_> = nodes.iter().map(|node| chain(*node)).collect();
    let said = said.join("; ");
    let why = match error.downcast_ref() {
        _ if nodes.is_empty() => chain(error),
        Some(AcquireError::NoQuorum(none)) if none.needed > 1 => none.to_string(),
        _ => said,
    };
    // When too few servers can be reached for that, it is this host that is in trouble.
    let is_short = nodes.iter().any(|node| node.kind() == NodeErrorKind::NoResources);
    let code = if is_short { exit::NO_RESOURCES } else { exit::UNKNOWN };
    let failure = Failure::new(code, format!("{what}: {why}"));
    let first = nodes.iter().find(|node| !is_short || node.kind() == NodeErrorKind::NoResources);
    match first.and_then(|node| remedy(node)) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// What each server said that did not do its part.
fn nodes_errors<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a NodeError> {
    if let Some(AcquireError::NoQuorum(none)) = error.downcast_ref() {
        return none.failed.iter().collect();
    }
    let errors = match (error.downcast_ref(), error.downcast_ref()) {
        (Some(InspectError::Unanswered(errors)), _) => Some(errors),
        (_, Some(ReleaseError::Unconfirmed(errors))) => Some(errors),
        _ => None,
    };
    errors.map(|errors| errors.iter().collect()).unwrap_or_default()
}

/// What to try when a server is in this kind of trouble, by the options of the command.
fn remedy(error: &NodeError) -> Option<&'static str> {
    use NodeErrorKind as Kind;
    match error.kind() {
        Kind::TimedOut if error.is_store() => Some("try again, or give it time with --wait"),
        Kind::TooFar => Some("give a longer --ttl"),
        Kind::Loading | Kind::Busy | Kind::Down => {
            Some("try again later, or give it time with --wait")
        }
        Kind::DiskFull => {
            Some("make room on that disk, or name another file with --server file:///path")
        }
        Kind::Restarted | Kind::ClockStepped => {
            Some("it votes by itself later: give it time with --wait")
        }
        Kind::UnfitStore => Some("or name another file with --server file:///path"),
        _ => error.hint(),
    }
}

/// A key, or another argument, as it is shown.
pub(crate) fn quoted(text: &[u8]) -> String {
    Shown::quoted(text).to_string()
}

/// Others' words may hold line ends, or what makes a terminal do something.
pub(crate) fn one_line(text: &str) -> String {
    Shown::new(text.trim_end()).at_most(MAX_LINE).to_string()
}

/// The words of a dozen servers, each of which has its bound.
const MAX_LINE: usize = 8_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(one_line("a\nb\u{1b}[2Jc\n"), "a\\nb\\u{1b}[2Jc");
        assert_eq!(quoted("sku \"1\"".as_bytes()), "\"sku \\\"1\\\"\"");
        assert_eq!(quoted(b"a\xff"), "\"a\\xff\"");
    }

    #[test]
    fn every_cause_is_printed() {
        let error = tenure::Client::connect("nowhere").map(drop).unwrap_err();
        assert!(chain(&error).starts_with("bad server address: "));
    }
}
