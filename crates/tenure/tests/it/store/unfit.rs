//! Files that no store may be in.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
};

use tenure::{LossReason, NodeErrorKind, ReleaseError, blocking::Lock};

use super::{Store, connect, untold};

/// Expects a refusal, and these words in it.
#[track_caller]
fn is_refused(lock: &Lock, kind: NodeErrorKind, words: &[&str]) {
    let error = untold(lock.try_acquire());
    let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert_eq!(error.kind(), kind, "{error}: {why}");
    for word in words {
        assert!(why.contains(word), "no {word:?} in {why:?}");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    let store = Store::new();
    fs::write(store.file(), b"not a store, but longer than a header has to be: ".repeat(40))
        .unwrap();
    set_mode(&store.file(), 0o600);
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &["not a database"]);
}

/// Reproduces: a block of the file went bad.
#[test]
fn a_store_that_was_damaged_is_refused_until_another_is_in_its_place() {
    let store = Store::new();
    store.lock("k").acquire().unwrap().release().unwrap();
    let mut bytes = fs::read(store.file()).unwrap();
    // Behind the header, which says which format it is.
    bytes[100..].fill(0xff);
    fs::write(store.file(), bytes).unwrap();
    let lock = store.lock("k");
    is_refused(&lock, NodeErrorKind::UnfitStore, &["malformed"]);
    fs::remove_file(store.file()).unwrap();
    lock.try_acquire().unwrap().expect("a store that is new").release().unwrap();
}

/// Neither what was in it nor what it means is known.
#[test]
fn a_store_of_another_version_is_refused() {
    let store = Store::new();
    store.lock("k").acquire().unwrap().release().unwrap();
    let sql = rusqlite::Connection::open(store.file()).unwrap();
    sql.pragma_update(None, "user_version", 2).unwrap();
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &["version 2", "version 1"]);
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    let store = Store::new();
    fs::write(store.file(), b"").unwrap();
    set_mode(&store.file(), 0o666);
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &["locks.db", "mode 666"]);
}

/// Whoever may write there may put another file in its place.
#[test]
fn a_directory_that_others_may_write_is_refused() {
    let store = Store::new();
    set_mode(store.directory.path(), 0o777);
    let directory = store.directory.path().to_str().unwrap();
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &[directory, "mode 777"]);
    // As in /tmp, where nobody may put anything in the place of another's.
    set_mode(store.directory.path(), 0o1777);
    store.lock("k").try_acquire().unwrap().expect("nobody holds it").release().unwrap();
}

/// Number 4242 stands for the other user. Only root can give files away: who is not meets a file
/// of root's instead.
#[test]
fn another_user_s_file_is_refused_and_left_alone() {
    if !rustix::process::geteuid().is_root() {
        is_refused(
            &connect(Path::new("/etc/passwd")).lock("k"),
            NodeErrorKind::UnfitStore,
            &["/etc/passwd", "number 0"],
        );
        return;
    }
    let store = Store::new();
    fs::write(store.file(), b"").unwrap();
    set_mode(&store.file(), 0o600);
    chown(store.file(), Some(4242), None).unwrap();
    let file = store.file().display().to_string();
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &[&file, "number 4242"]);
    assert_eq!(fs::metadata(store.file()).unwrap().len(), 0);
    assert_eq!(entries(store.directory.path()), ["locks.db"]);
}

/// What another user left there is taken for the store's own: a journal is played back, whatever
/// it says.
#[test]
fn another_user_s_journal_is_refused() {
    let store = Store::new();
    store.lock("k").acquire().unwrap().release().unwrap();
    let journal = store.file().with_extension("db-journal");
    let journal_words = journal.display().to_string();
    if rustix::process::geteuid().is_root() {
        chown(&journal, Some(4242), None).unwrap();
        is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &[&journal_words, "number 4242"]);
    } else {
        // Who cannot give files away meets one that others may write.
        set_mode(&journal, 0o666);
        is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &[&journal_words, "mode 666"]);
    }
}

/// Its owner may put another file in the store's place. Only root can give directories away, and
/// root's directories are everybody's to be in: who is not root has none to meet, and sees that
/// root's are no obstacle.
#[test]
fn another_user_s_directory_is_refused_and_left_alone() {
    let store = Store::new();
    if !rustix::process::geteuid().is_root() {
        assert_eq!(fs::metadata("/tmp").unwrap().uid(), 0);
        let name = tenure_testkit::unique_key("tenure-test-store");
        let file = Path::new("/tmp").join(name).with_extension("db");
        let taken = connect(&file).lock("k").try_acquire().map(|guard| guard.is_some());
        // They are outside the test's own directory.
        drop((fs::remove_file(&file), fs::remove_file(file.with_extension("db-journal"))));
        assert!(taken.unwrap(), "nobody holds it");
        return;
    }
    let directory = store.directory.path();
    chown(directory, Some(4242), None).unwrap();
    let words = [directory.to_str().unwrap(), "number 4242"];
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &words);
    assert!(!store.file().exists());
}

#[test]
fn a_store_that_cannot_be_made_is_unreachable() {
    let store = Store::new();
    let file = store.directory.path().join("missing").join("locks.db");
    is_refused(&connect(&file).lock("k"), NodeErrorKind::Unreachable, &["missing", "No such file"]);
}

#[test]
fn a_directory_in_the_place_of_the_store_is_refused() {
    let store = Store::new();
    fs::create_dir(store.file()).unwrap();
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &["is no regular file"]);
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "owner.lock").collect()
}

/// Reproduces: who had the store open went on in the deleted file, and excluded nobody.
#[test]
fn a_store_that_was_deleted_is_left_by_those_who_had_it_open() {
    let store = Store::new();
    let before = store.lock("k");
    let guard = before.acquire().unwrap();
    fs::remove_file(store.file()).unwrap();
    let next = store.lock("k").try_acquire().unwrap().expect("a store that is new");
    assert!(before.try_acquire().unwrap().is_none(), "two hold the lock");
    assert!(matches!(guard.release(), Err(ReleaseError::NotHeld(LossReason::Taken { .. }))));
    next.release().unwrap();
}
