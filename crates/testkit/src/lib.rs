//! Real servers, faults and waits for the tests of tenure.
//!
//! Everything here is synchronous: threads and blocking sockets, no runtime, so that a test of
//! the asynchronous library never shares an executor with the trouble it is put through.
//!
//! - [`Server`]: a private Redis or Valkey, which may be frozen, killed and restarted.
//! - [`Clock`]: the wall clock of such a server, frozen and moved by the test.
//! - [`Proxy`]: a network between client and server that delays, swallows and cuts.
//! - [`FakeServer`]: a server that says exactly what the test wants said, or plays a [`Trick`].
//! - [`Raw`]: a connection of the test's own, to look at the server behind the library's back.
//! - [`on_small_disk`], [`with_mounts`], [`in_another_time`]: a file system that fills up, mounts
//!   that nobody else sees, a clock that others do not have.
//! - [`fuzz()`]: a parser is fed with what it was not made for.
//! - [`eventually`]: the one way to wait for something.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test harness reports trouble by failing the test that met it"
)]
#![expect(
    clippy::exhaustive_enums,
    reason = "not published: tests match on every case, and a new case should break them"
)]

mod address;
mod clock;
mod disk;
mod fake;
mod fuzz;
mod kind;
mod monitor;
mod proxy;
mod raw;
mod resp;
mod server;
mod shim;
mod spawner;
mod temp;
mod value;
mod wait;

pub use address::{ServerEndpoint, SocketStream};
pub use clock::Clock;
pub use disk::{in_another_time, on_small_disk, with_mounts};
pub use fake::{FakeAnswer, FakeServer, Trick};
pub use fuzz::fuzz;
pub use kind::{Missing, ServerKind, servers_dir};
pub use monitor::Monitor;
pub use proxy::{Gated, Proxy};
pub use raw::Raw;
pub use server::{Builder, Frozen, Server};
pub use temp::TempDir;
pub use value::Value;
pub use wait::{eventually, raised_at_the_end, scale, unique_key};
