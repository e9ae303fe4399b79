//! The embedded store, beyond the contract: other processes, and files that are not fit.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use rusqlite::{Connection, params};
use tenure::{
    AcquireError, LossReason, NodeErrorKind, ReleaseError,
    blocking::{Client, Lock},
};
use tenure_testkit::TempDir;

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
        Client::connect(&format!("file://{}", self.file().display())).unwrap().lock(key)
    }

    fn kind_of_refusal(&self) -> NodeErrorKind {
        match self.lock("k").try_acquire() {
            Err(AcquireError::NoQuorum(error)) => error.failed[0].kind(),
            other => panic!("{other:?}"),
        }
    }
}

/// Reproduces: a host reboots while a lock is held; its row says it is held still.
#[test]
fn another_boot_gives_every_lease_up_and_keeps_its_number() {
    let store = Store::new();
    let guard = store.lock("k").ttl(Duration::from_secs(3_600)).acquire().unwrap();
    let before = guard.fencing_token();
    let sql = Connection::open(store.file()).unwrap();
    sql.execute("UPDATE locks SET boot = 'another boot', number = number + 1000000000", [])
        .unwrap();
    let next = store.lock("k").try_acquire().unwrap().expect("the lease is void");
    assert!(next.fencing_token().get() > before.get() + 1_000_000_000);
    let taken = matches!(guard.release(), Err(ReleaseError::NotHeld(LossReason::Taken { .. })));
    assert!(taken, "the earlier holder is told");
}

/// Reproduces: a process is stopped inside its transaction, and keeps the file's lock.
#[test]
fn a_transaction_that_is_held_up_is_waited_for_and_told() {
    let store = Store::new();
    let lock = store.lock("k").ttl(Duration::from_secs(4));
    lock.acquire().unwrap().release().unwrap();
    let mut sql = Connection::open(store.file()).unwrap();
    let transaction =
        sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    match lock.try_acquire() {
        Err(AcquireError::NoQuorum(error)) => assert!(error.failed[0].is_retryable()),
        other => panic!("{other:?}"),
    }
    transaction.rollback().unwrap();
    lock.acquire_within(Duration::from_secs(5)).unwrap().release().unwrap();
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    let store = Store::new();
    fs::write(store.file(), b"not a store, but longer than a header has to be: ".repeat(40))
        .unwrap();
    fs::set_permissions(store.file(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(store.kind_of_refusal(), NodeErrorKind::UnfitStore);
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    let store = Store::new();
    fs::write(store.file(), b"").unwrap();
    fs::set_permissions(store.file(), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(store.kind_of_refusal(), NodeErrorKind::UnfitStore);
}

#[test]
fn a_store_that_cannot_be_made_is_unreachable() {
    let store = Store::new();
    fs::create_dir(store.file()).unwrap();
    assert_eq!(store.kind_of_refusal(), NodeErrorKind::Unreachable);
}

/// Reproduces: a thousand names are locked once each, and their numbers end.
#[test]
fn rows_that_have_ended_are_swept() {
    let store = Store::new();
    let client = Client::connect(&format!("file://{}", store.file().display())).unwrap();
    client.lock("first").acquire().unwrap().release().unwrap();
    let sql = Connection::open(store.file()).unwrap();
    sql.execute("UPDATE locks SET number_ends_ms = 1, token_ends_ms = 0", params![]).unwrap();
    for _ in 0..500 {
        client.lock("other").acquire().unwrap().release().unwrap();
    }
    let left: i64 = sql
        .query_row("SELECT count(*) FROM locks WHERE key = ?1", [&b"first"[..]], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}
