//! The library's tests: against real servers, a network that misbehaves, and the table in memory.
//!
//! - [`contract`]: the same cases for every store and both ways of calling.
//! - [`wire`]: what servers see, and what other libraries may rely on.
//! - [`cases`], [`peers`], [`tutorials`]: what earlier locks got wrong; their sources are in
//!   `docs/origins.md`.
//! - [`faults`]: each thing that can break, broken on purpose.
//! - [`hostile`]: servers that do what no server should.
//! - [`queue`]: the wait queue.
//! - [`quorum`]: several servers that vote.
//! - `store`: the embedded store's own: other processes, its file and its disk.
//! - `metrics`: what is counted.
//! - [`chaos`]: what its tests share, who let everything go wrong at once.
//! - `documents`: what README and `docs/` show: Rust and SQL.
//! - [`program`]: what tests start, stop and kill.
//! - [`api`]: what the types promise.
//! - `words`: what is shown of what servers and others say.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "the helpers of tests fail as the tests do"
)]

mod api;
mod cases;
mod chaos;
mod contract;
mod documents;
mod fake;
mod faults;
mod hostile;
#[cfg(feature = "metrics")]
mod metrics;
mod peers;
mod program;
mod queue;
mod quorum;
mod servers;
#[cfg(feature = "sqlite")]
mod store;
mod tutorials;
mod wire;
mod words;

use std::time::Duration;

use tenure::{AcquireError, NodeErrorKind};

/// Generous: a wait that takes this long has failed.
const LIMIT: Duration = Duration::from_secs(20);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Whether a wait ran out while another held the lock.
///
/// The last try of a wait has 50 ms to be answered. On a machine that is too busy for that, nobody
/// knows the outcome, and to say so is right, too.
fn ran_out<T>(result: &Result<T, AcquireError>) -> bool {
    match result {
        Err(AcquireError::TimedOut { .. }) => true,
        Err(AcquireError::NoQuorum(none)) => none.failed[0].kind() == NodeErrorKind::TimedOut,
        _ => false,
    }
}
