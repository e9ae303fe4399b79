//! A disk without room.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use tenure::{AcquireError, ExtendError, LossReason, NodeError, NodeErrorKind, ReleaseError};
use tenure_testkit::eventually;

use super::{Store, connect, given, indeterminate};
use crate::{
    LIMIT, ms,
    program::{self, Program},
    secs,
};

/// The program that has the disk does what the tests here demand, one after the other.
fn on_a_full_disk(demand: &str) {
    let store = Store::new();
    let file = store.file().display().to_string();
    let settings = [("STORE", &*file), ("DEMAND", demand)];
    let at = store.directory.path();
    let mut program = Program::start_on_small_disk(at, "meet a full disk", &settings);
    assert_eq!(program.hear(), "as demanded");
    program.end_well();
}

#[test]
fn a_full_disk_is_reported_as_such_and_never_as_a_holder() {
    on_a_full_disk("reported");
}

#[test]
fn a_store_is_created_once_a_full_disk_has_room() {
    on_a_full_disk("begun");
}

#[test]
fn a_lease_on_a_full_disk_is_held_until_it_expires() {
    on_a_full_disk("held");
}

#[test]
fn a_release_on_a_full_disk_is_unconfirmed_and_done_once_there_is_room() {
    on_a_full_disk("released");
}

pub(super) fn meet_a_full_disk() {
    let file = given();
    match &*program::setting("DEMAND") {
        "reported" => told(&file),
        "begun" => begun(&file),
        "held" => held(&file),
        "released" => released(&file),
        other => panic!("{other}"),
    }
    program::say("as demanded");
}

fn told(file: &Path) {
    let client = connect(file);
    let lock = client.lock("k");
    let before = lock.acquire().unwrap().fencing_token();
    let held = client.lock("held").acquire().unwrap();
    let ballast = Ballast::in_the_way_of(file);
    is_full(&indeterminate(lock.try_acquire()));
    match lock.acquire_within(ms(300)) {
        Err(AcquireError::NoQuorum(error)) => is_full(&error.failed[0]),
        other => panic!("{other:?}"),
    }
    // What needs no room is reported as usual.
    assert!(lock.inspect().unwrap().held.is_none());
    assert!(client.lock("held").try_acquire().unwrap().is_none());
    drop(ballast);
    let guard = lock.try_acquire().unwrap().expect("nobody was given it meanwhile");
    assert!(guard.fencing_token() > before);
    guard.release().unwrap();
    held.release().unwrap();
    is_sound(file);
}

fn begun(file: &Path) {
    let ballast = Ballast::in_the_way_of(file);
    let lock = connect(file).lock("k");
    is_full(&indeterminate(lock.try_acquire()));
    is_full(&indeterminate(connect(file).lock("k").try_acquire()));
    drop(ballast);
    lock.try_acquire().unwrap().expect("nobody holds it").release().unwrap();
    is_sound(file);
}

fn held(file: &Path) {
    let client = connect(file);
    let guard = client.lock("k").ttl(secs(1)).acquire().unwrap();
    let number = guard.fencing_token();
    let ballast = Ballast::in_the_way_of(file);
    match guard.extend(secs(60)) {
        Err(ExtendError::Unconfirmed(errors)) => is_full(errors.first()),
        other => panic!("{other:?}"),
    }
    assert!(guard.valid_for().is_some_and(|left| left < secs(1)), "nothing was extended");
    assert_eq!(guard.lost(), LossReason::Expired);
    drop(ballast);
    let next = client.lock("k").acquire_within(LIMIT).unwrap();
    assert!(next.fencing_token() > number);
    next.release().unwrap();
    is_sound(file);
}

fn released(file: &Path) {
    let client = connect(file);
    let guard = client.lock("k").ttl(secs(600)).acquire().unwrap();
    let ballast = Ballast::in_the_way_of(file);
    match guard.release() {
        Err(ReleaseError::Unconfirmed(errors)) => is_full(errors.first()),
        other => panic!("{other:?}"),
    }
    let lock = client.lock("k");
    assert!(lock.inspect().unwrap().held.is_some(), "it is held until the release is written");
    drop(ballast);
    eventually(LIMIT, "the release is repeated", || lock.inspect().unwrap().held.is_none());
    is_sound(file);
}

fn is_full(error: &NodeError) {
    let chain = format!("{error}: {}", std::error::Error::source(error).expect("a cause"));
    assert_eq!(error.kind(), NodeErrorKind::DiskFull, "{chain}");
    assert!(error.is_retryable(), "there may be room again");
    assert!(chain.contains("locks.db") && chain.contains("disk is full"), "{chain}");
}

fn is_sound(file: &Path) {
    let check = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let sql = Connection::open(file).unwrap();
    assert_eq!(sql.query_row("PRAGMA integrity_check", [], check).unwrap(), "ok");
}

/// A file that takes all the room there is, until this is dropped.
struct Ballast(PathBuf);

impl Ballast {
    /// Also the room that the store's journal has, so that nothing can be written.
    fn in_the_way_of(store: &Path) -> Self {
        let ballast = Self(store.with_extension("ballast"));
        let journal = store.with_extension("db-journal");
        if journal.exists() {
            File::options().write(true).open(journal).unwrap().set_len(0).unwrap();
        }
        let mut file = File::create(&ballast.0).unwrap();
        let full = std::iter::repeat_with(|| file.write_all(&[0; 4_096])).find_map(Result::err);
        assert_eq!(full.expect("the disk has an end").kind(), ErrorKind::StorageFull);
        ballast
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}
