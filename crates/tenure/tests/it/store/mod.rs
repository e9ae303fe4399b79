//! The embedded store, beyond the contract: other processes, its file, and the disk below.
//!
//! A process that opens and closes a file loses the locks that it has there, so no test reads the
//! file of a store that it uses itself, but through SQLite.

mod boots;
mod crowd;
mod disk;
mod flips;
mod inside;
mod killed;
mod rows;
mod seal;
mod stopped;
mod unfit;
mod waiters;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tenure::{
    AcquireError, NodeError,
    blocking::{Client, Lock, LockGuard},
};
use tenure_testkit::TempDir;

use crate::program::{self, Program};

/// What the tests here start, by name.
pub(crate) const PROGRAMS: [(&str, fn()); 8] = [
    ("add in the store", crowd::add),
    ("come and go in the store", killed::come_and_go),
    ("stay inside a transaction", inside::stay_inside),
    ("try once in the store", inside::try_once),
    ("meet a full disk", disk::meet_a_full_disk),
    ("hold in the store", boots::hold),
    ("wait in the store", waiters::wait),
    ("take turns in the store", waiters::take_turns),
];

/// A store of the test's own.
struct Store {
    directory: TempDir,
}

impl Store {
    fn new() -> Self {
        Self { directory: TempDir::new() }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("locks.db")
    }

    fn lock(&self, key: &str) -> Lock {
        connect(&self.file()).lock(key)
    }

    /// The file's path, for a program.
    fn setting(&self) -> String {
        self.file().display().to_string()
    }

    fn sql(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    /// Starts a program that is given the store.
    fn start(&self, program: &str, settings: &[(&str, &str)]) -> Program {
        let file = self.setting();
        Program::start(program, &[&[("STORE", &*file)], settings].concat())
    }

    /// What is wrong with the file, if anything is.
    fn is_sound(&self) -> bool {
        let check = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        self.sql().query_row("PRAGMA integrity_check", [], check).unwrap() == "ok"
    }
}

fn connect(file: &Path) -> Client {
    Client::connect(&format!("file://{}", file.display())).unwrap()
}

/// The store that a test gave this program.
fn given() -> PathBuf {
    program::setting("STORE").into()
}

/// Why it is unknown whether the lock is free.
fn indeterminate(result: Result<Option<LockGuard>, AcquireError>) -> NodeError {
    match result {
        Err(AcquireError::NoQuorum(mut error)) => error.failed.remove(0),
        other => panic!("not indeterminate: {other:?}"),
    }
}
