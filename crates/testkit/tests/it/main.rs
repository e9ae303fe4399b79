//! The testkit keeps its own promises.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "the helpers of tests fail as the tests do"
)]

mod clock;
mod fake;
mod proxy;
mod server;

use std::time::Duration;

/// Generous: a wait that takes this long has failed.
const LIMIT: Duration = Duration::from_secs(10);
