//! Why renewals fail.

use std::{error::Error, fmt, time::Duration};

use super::{NodeError, NodeErrors};

/// Renewals of a lease fail: for how long, and what the servers said last.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct RenewalFailure {
    /// How long ago the first renewal was sent after which none succeeded.
    pub failing_for: Duration,
    /// What the servers said to the last one, or why they said nothing.
    pub errors: NodeErrors,
}

impl RenewalFailure {
    /// Whether a server refuses, and goes on refusing until somebody changes a setting: a longer
    /// TTL changes nothing then.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        !self.errors.iter().all(NodeError::is_retryable)
    }
}

impl fmt::Display for RenewalFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failing_for, errors } = self;
        write!(
            f,
            "renewals failed for {:.1} s: {}",
            failing_for.as_secs_f64(),
            errors.in_one_line()
        )
    }
}

impl Error for RenewalFailure {}
