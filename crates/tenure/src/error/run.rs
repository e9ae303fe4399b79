//! How a piece of work that was run under a lock failed.

use std::{error::Error, fmt};

use super::{AcquireError, Loss, ReleaseError};

/// Why work under a lock failed.
///
/// It contains the work's output if there is one.
#[non_exhaustive]
#[derive(Debug)]
pub enum RunError<T> {
    /// The lock was not acquired; the work did not begin.
    Acquire(AcquireError),
    /// The lease was lost during the work. The work's future was dropped at its next await.
    Lost {
        /// The lock, and why the lease was lost.
        loss: Loss,
        /// The work's output, if the work ended anyway (blocking work cannot be dropped).
        output: Option<T>,
    },
    /// The work ended, but the release was not confirmed.
    Release {
        /// Why.
        error: ReleaseError,
        /// The work's output.
        output: T,
    },
}

impl<T> fmt::Display for RunError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => write!(f, "the work did not begin: {error}"),
            Self::Lost { loss, .. } => write!(f, "lost during the work: {loss}"),
            Self::Release { error, .. } => write!(f, "the work is done: {error}"),
        }
    }
}

/// The text has all that is known, so there is no source.
impl<T: fmt::Debug> Error for RunError<T> {}
