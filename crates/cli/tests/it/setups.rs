//! The setups that the command works with, and the trouble that tests make there.

use std::fs;

use rustix::{fs::OFlags, io::Errno};
use tenure_testkit::{Server, ServerKind, TempDir, eventually};

use crate::tool::{PATIENCE, Tenure, opened, shared};

/// One server, three, and a store.
pub(crate) struct Setups {
    /// Their addresses, as `TENURE_SERVERS` has them.
    pub(crate) urls: [String; 3],
    _servers: [Server; 3],
    pub(crate) dir: TempDir,
}

impl Setups {
    pub(crate) fn start() -> Self {
        let servers = ServerKind::ALL.map(|kind| Server::builder(kind).tcp().start());
        opened(&servers);
        let three = servers.each_ref().map(|one| format!("{}?durable=yes", one.url()));
        let dir = TempDir::new();
        let store = format!("file://{}", dir.path().join("locks.db").display());
        Self { urls: [shared().url(), three.join(","), store], _servers: servers, dir }
    }
}

/// Takes the lock from the holder whose token is in this file.
pub(crate) fn lose(servers: &str, key: &str, file: &std::path::Path) {
    let token = || fs::read_to_string(file).ok().filter(|token| token.ends_with('\n'));
    eventually(PATIENCE, "the token is written", || token().is_some());
    let release = Tenure::to("release").env("TENURE_SERVERS", servers);
    release.args(["--token", token().unwrap().trim(), key]).run().code(0).silent();
}

/// A pipe that nobody reads, and that is full.
pub(crate) fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writer, &[b'x'; 4096]) != Err(Errno::AGAIN) {}
    rustix::fs::fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}
