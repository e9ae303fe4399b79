//! What may go wrong: servers that stop, restart, refuse and forget, networks that lose, programs
//! that pause, fork, panic and end. Each test says
//! which promise it checks.
//!
//! Nothing here asserts how fast something is. A promise is: never after a deadline, never a
//! smaller number, no key left; so limits in these tests are only how long to wait for what must
//! come.

mod barrier;
mod budget;
mod cancellation;
mod contention;
mod distance;
mod executors;
mod exit;
mod fencing;
mod forced;
mod fork;
mod late_commands;
mod leaks;
mod login;
mod matrix;
pub(crate) mod outage;
pub(crate) mod ownership;
mod panic;
pub(crate) mod pause;
mod paused_clock;
mod reconnect;
mod refusals;
pub(crate) mod renewal;
mod replica;
mod rights;
mod scripts;
mod waiting;
mod watch;
mod wire;

use std::{sync::LazyLock, thread, time::Duration};

use tenure::{LossReason, NodeError, NodeErrorKind, blocking};
use tenure_testkit::{Server, ServerKind, eventually};

use crate::program;

/// What the tests here start, by name.
pub(crate) const PROGRAMS: [(&str, fn()); 7] = [
    ("contend", contention::contend),
    ("drop and return", exit::drop_and_return),
    ("drop beside a static", exit::drop_beside_a_static),
    ("fork", fork::parent),
    ("come and go", leaks::come_and_go),
    ("panic in the engine", panic::panic_in_the_engine),
    ("hold", pause::holder),
];

/// How long to wait for what must come, on a machine that compiles something else meanwhile.
const LIMIT: Duration = Duration::from_secs(20);

/// The TTL of most tests here.
const TTL: Duration = Duration::from_secs(2);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A server that no test hurts.
fn shared() -> &'static Server {
    static SHARED: LazyLock<Server> = LazyLock::new(|| private().start());
    &SHARED
}

/// A server that a test may hurt.
fn private() -> tenure_testkit::Builder {
    Server::builder(ServerKind::Redis70).tcp()
}

/// Does it with a server of each kind, all at once.
fn with_each_kind(test: impl Fn(ServerKind) + Sync) {
    thread::scope(|scope| {
        let test = &test;
        let kinds: Vec<_> =
            ServerKind::ALL.map(|kind| (kind, scope.spawn(move || test(kind)))).into();
        for (kind, ended) in kinds {
            assert!(ended.join().is_ok(), "with {kind}");
        }
    });
}

fn connect(url: &str) -> blocking::Client {
    blocking::Client::connect(url).expect("a good address")
}

/// What stands at a key.
fn value(server: &Server, key: &str) -> Option<Vec<u8>> {
    let mut raw = server.raw();
    raw.cmd(&["GET", key]).bytes().map(<[u8]>::to_vec)
}

fn is_free(server: &Server, key: &str) -> bool {
    value(server, key).is_none()
}

fn eventually_free(server: &Server, key: &str) {
    eventually(LIMIT, "no key of ours is left", || is_free(server, key));
}

/// What the server has left of a key's life, in ms; below zero without a key or a TTL.
fn ttl_left(server: &Server, key: &str) -> i64 {
    server.cmd(&["PTTL", key]).int()
}

/// The node's error inside a failed acquisition.
fn node_error(error: &tenure::AcquireError) -> &NodeError {
    match error {
        tenure::AcquireError::NoQuorum(none) => &none.failed[0],
        other => panic!("not a node's error: {other}"),
    }
}

/// The kind of trouble that a failed acquisition met.
fn kind_of<T: std::fmt::Debug>(result: Result<T, tenure::AcquireError>) -> NodeErrorKind {
    node_error(&result.expect_err("it fails")).kind()
}

/// Waits until a lease is lost.
fn when_lost(guard: &blocking::LockGuard) -> LossReason {
    eventually(LIMIT, "the lease is lost", || guard.ensure_held().is_err());
    guard.lost()
}

/// Held on purpose, for so long.
fn hold(long: Duration) {
    thread::sleep(long);
}
