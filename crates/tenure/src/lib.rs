//! A distributed lock for Redis and Valkey: fencing numbers, a loss signal in time, nothing left
//! behind.
//!
//! ```
//! # async fn deduct(_: tenure::FencingToken) {}
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let client = tenure::Client::connect("redis://127.0.0.1:6379")?;
//! let lock = client.lock("order:deduct:sku_1001").ttl(Duration::from_secs(10));
//!
//! // Acquires, renews, stops the work when the lease is lost, and releases.
//! lock.run(async |lease| deduct(lease.fencing_token()).await).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Lock::run`] is the paved path. [`Lock::acquire`], [`Lock::try_acquire`] and the [`LockGuard`]
//! they give are for everything else, and [`blocking`] has the same names for threads.
//!
//! A lock is `SET key token PX ttl` if absent at the key exactly as given, so this crate and the
//! libraries that do the same (go-zero, redsync, redis-py, hand-written ones) exclude each other.
//!
//! What is promised, and what no lock on Redis can promise, is in `SAFETY.md`.

mod address;
pub mod blocking;
mod client;
mod clock;
#[cfg(doctest)]
mod documents;
mod engine;
mod error;
mod event;
mod fence_gate;
mod guard;
mod lock;
mod node;
mod process;
mod quiet;
mod random;
mod report;
mod task;

pub use client::Client;
pub use error::{
    AcquireError, CloseError, ConfigError, ExtendError, InspectError, Loss, NoQuorum, NodeError,
    NodeErrorKind, NodeErrors, ReleaseError, RenewalFailure, RevalidateError, RunError,
};
pub use fence_gate::{FENCED_SET, FenceGate, StaleToken};
pub use guard::{Lease, LockGuard};
pub use lock::{Lock, Renewal};
pub use report::NodeReport;
pub use tenure_core::{
    FenceFault, FencingToken, Held, Holder, HolderLabel, Inspection, KeyError, LabelError, LockKey,
    LossReason, Shown, Source, Ticket, Token, TokenError, TtlError, TtlLeft, Wait, Waiter,
};
