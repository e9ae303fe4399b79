//! A distributed lock for Redis and Valkey: fencing numbers, a loss signal in time, nothing left
//! behind.
//!
//! ```no_run
//! # async fn deduct(_: tenure::FencingToken) -> std::io::Result<()> { Ok(()) }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let client = tenure::Client::connect("redis://127.0.0.1:6379")?;
//! let lock = client.lock("order:deduct:sku_1001").ttl(Duration::from_secs(10));
//!
//! // Acquires, renews, stops the work if the lease is lost, and releases.
//! lock.run(async |lease| deduct(lease.fencing_token()).await).await??;
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`Client::connect`] and [`Lock::run`]. For everything else there are
//! [`Lock::acquire`], [`Lock::try_acquire`] and the [`LockGuard`] that they return. [`blocking`]
//! has the same names for threads. The async API runs on any executor: a [`Client`] owns one
//! thread with its connections, renewals and releases.
//!
//! A lock is `SET key token PX ttl` if absent, at the key exactly as given. Libraries that do the
//! same (go-zero, redsync, redis-py, hand-written code) exclude `tenure` and are excluded by it.
//!
//! # What a lock cannot do
//!
//! A process can be paused between its check and its write, for longer than its lease, and then
//! write. Only the resource can refuse that write, by the number that [`Lease::fencing_token`]
//! returns: each acquisition gets a larger one. [`FenceGate`] checks it in memory, [`FENCED_SET`]
//! in Redis. `SAFETY.md` in the repository lists each promise with the tests that prove it.
//!
//! # Features
//!
//! None is on by default.
//!
//! * `sqlite`: the embedded store for the processes of one host, `local:` and `file:///path`
//!   (Linux). It links `rusqlite` 0.40 with its bundled SQLite (`libsqlite3-sys` 0.38). A program
//!   can link only one version of that library, so your own `rusqlite` must be 0.40 too. The
//!   SQLite drivers of `sqlx` 0.8 and 0.9 need an older one and cannot be in the same program.
//! * `metrics`: the metrics below, through the [`metrics`](https://docs.rs/metrics/0.24) facade
//!   0.24.
//!
//! # Errors
//!
//! "Held by another", "unknown", "lost" and "bad input" are different variants; a missing reply
//! never becomes a yes or a no. Each error is one line that says what failed, for which lock, what
//! each server answered and what to try.
//!
//! * [`AcquireError`]: `TimedOut` says that another client holds the lock, `NoQuorum` that the
//!   state is unknown. [`Lock::try_acquire`] returns `None` if another client holds it.
//! * [`RunError`]: of [`Lock::run`]. It contains the work's output if there is one.
//! * [`ExtendError`], [`ReleaseError`], [`RevalidateError`]: `NotHeld` contains a [`Loss`], which
//!   says why the lease was lost; `Unconfirmed` says that too few servers confirmed the call.
//! * [`InspectError`], [`CloseError`], and [`ConfigError`] for bad addresses and settings.
//! * [`NodeError`]: the failure of one server, with its [`NodeErrorKind`] and a hint.
//!
//! # Several servers
//!
//! Several addresses, with commas between them, make a quorum: a client holds a lock once a
//! majority of all servers has granted it, so it survives the loss of a minority. Use independent
//! servers, not replicas of each other.
//!
//! ```
//! # fn example() -> Result<(), tenure::ConfigError> {
//! let client = tenure::Client::connect("redis://a:6379,redis://b:6379,redis://c:6379")?;
//! # Ok(())
//! # }
//! ```
//!
//! A server that is new or may have lost locks does not vote at first. [`Lock::nodes`] shows which
//! servers vote, [`Lock::max_ttl`] says for how long a server does not, and [`Client::open_new`]
//! lets new servers vote at once.
//!
//! # Testing
//!
//! `memory://` is a private table in the client and needs no server; with `memory://NAME`, all
//! clients of the process share the table of that name.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = tenure::blocking::Client::connect("memory://")?;
//! let lock = client.lock("stock");
//! let guard = lock.acquire()?;
//! assert!(lock.try_acquire()?.is_none());
//! guard.release()?;
//! assert!(lock.try_acquire()?.is_some());
//! # Ok(())
//! # }
//! ```
//!
//! Leases run on a real clock, which `tokio::time::pause` does not stop. In tests that pause
//! tokio's clock, use `memory://`, or call [`blocking`] in `spawn_blocking`.
//!
//! # Events
//!
//! The library logs through [`tracing`](https://docs.rs/tracing), with the target `tenure::event`.
//! No event contains a password.
//!
//! * `acquired`: debug; `key`, `class`, `fencing_token`, `waited`
//! * `held by another`: debug; `key`, `class`, `holder`
//! * `held by another, without a TTL`: warn; `key`, `class`, `holder`
//! * `a server could not determine whether the lock is free`: warn, or debug if that server may
//!   not vote yet; `key`, `class`, `error`
//! * `a renewal was not answered`: warn; `key`, `class`, `error`
//! * `lost`: error; `key`, `class`, `reason`
//! * `held again: the lease had expired locally, but not on the servers`: warn; `key`, `class`
//! * `released`: debug; `key`, `class`, `fencing_token`, `held`
//! * `a release was not answered; it is repeated`: warn; `key`, `error`
//! * `the connection to the server ended`: warn; `node`, `error`, `cause`
//! * `still no connection to the server`: debug; `node`, `error`, `cause`
//! * `unsafe address`: warn; `warning`
//! * warnings about one of several servers, each an event with the name `tenure.node.` and one of
//!   the kinds below: warn; `node`, `words`
//!
//! The span `acquire` (debug; `key`, `class`) is around each call that acquires, and the span
//! `work` (debug; `key`, `fencing_token`) around the work of [`Lock::run`].
//!
//! # Metrics
//!
//! With the feature `metrics`. The label `class` is the one of [`Lock::class`]; keys are never
//! labels.
//!
//! | metric | type | label |
//! |---|---|---|
//! | `tenure_acquired_total`: leases, resumed ones included | counter | `class` |
//! | `tenure_contended_total`: attempts that found the lock held | counter | `class` |
//! | `tenure_indeterminate_total`: errors in attempts without a result | counter | `class` |
//! | `tenure_renewal_failed_total`: errors in failed renewals | counter | `class` |
//! | `tenure_lost_total`: lost leases | counter | `class` |
//! | `tenure_held_again_total`: leases that `revalidate` restored | counter | `class` |
//! | `tenure_released_total`: confirmed releases | counter | `class` |
//! | `tenure_wait_seconds`: from the call to the lock | histogram | `class` |
//! | `tenure_hold_seconds`: from the lock to its release | histogram | `class` |
//! | `tenure_node_warnings_total`: warnings about a server | counter | `kind` |
//!
//! `kind` is `restarted`, `unmarked`, `run_hidden`, `same_server`, `not_primary`, `clock_stepped`
//! or `number_ahead`.

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
