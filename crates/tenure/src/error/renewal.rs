//! Why renewals fail.

use std::{error::Error, fmt, time::Duration};

use super::{NodeError, NodeErrors};

/// Since when renewals of a lease fail, and what the servers answered last.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct RenewalFailure {
    /// How long ago the first of the failing renewals was sent.
    pub failing_for: Duration,
    /// What the servers answered to the last renewal, or why they did not answer.
    pub errors: NodeErrors,
}

impl RenewalFailure {
    /// Whether a server refuses until somebody changes a setting. A longer TTL does not help then.
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
