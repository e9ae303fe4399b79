//! What can go wrong, one type per operation.
//!
//! "Held by another", "unknown", "lost" and "bad input" never share a variant. Each variant
//! says what is left on the servers. The text of an error is one line, and complete: what was to be
//! done, with which lock, what each server said, and what to try. So it has no source that would
//! repeat a part of it.

mod acquire;
mod config;
mod hint;
mod inspect;
mod lease;
mod node;
mod nodes;
mod renewal;
mod run;

pub use acquire::{AcquireError, NoQuorum};
pub use config::ConfigError;
pub use inspect::InspectError;
pub use lease::{ExtendError, Loss, ReleaseError, RevalidateError};
pub(crate) use node::is_shortage;
pub use node::{NodeError, NodeErrorKind};
pub use nodes::NodeErrors;
pub use renewal::RenewalFailure;
pub use run::RunError;

use tenure_core::{LockKey, Shown};

/// Releases were not answered before the client was closed.
///
/// Their keys may remain, at most for the TTL.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "closing the client: {unanswered} releases were not answered; \
     those locks end with their TTL at the latest"
)]
pub struct CloseError {
    /// How many.
    pub unanswered: usize,
}

/// A lock in an error.
fn named(key: Option<&LockKey>) -> String {
    key.map_or_else(|| "a lock".to_owned(), |key| Shown::quoted(key.as_bytes()).to_string())
}

/// What servers did not do, in one line.
fn described(doing: &str, errors: &NodeErrors) -> String {
    let hint = hint(errors.iter());
    format!("{doing} {}: {}{hint}", named(errors.key()), errors.in_one_line())
}

/// What to try, behind what servers said: for the first trouble of which that is known.
fn hint<'a>(errors: impl IntoIterator<Item = &'a NodeError>) -> String {
    let hint = errors.into_iter().find_map(NodeError::hint);
    hint.map_or_else(String::new, |hint| format!("; {hint}"))
}

/// Why nothing is done any more, and what to try.
const STOPPED: &str = "the client's engine has stopped: the client was closed, it failed, or this \
                       is a forked child; make a new client";
