//! Files that no store may be in.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink},
    path::Path,
};

use tenure::{Loss, LossReason, NodeErrorKind, ReleaseError, blocking::Lock};

use super::{Store, connect, indeterminate};

/// Expects a refusal, and these words in it.
#[track_caller]
fn is_refused(lock: &Lock, kind: NodeErrorKind, words: &[&str]) {
    let error = indeterminate(lock.try_acquire());
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
fn a_damaged_store_is_refused_until_it_is_replaced() {
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
    sql.pragma_update(None, "user_version", 3).unwrap();
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &["version 3", "version 2"]);
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    let store = Store::new();
    fs::write(store.file(), b"").unwrap();
    set_mode(&store.file(), 0o666);
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &["locks.db", "mode 666"]);
}

/// One who can open the file can hold the lock that a reader has, and nobody else can write.
#[test]
fn a_file_that_others_may_read_is_refused_with_the_cure() {
    for mode in [0o644, 0o640, 0o604] {
        let store = Store::new();
        fs::write(store.file(), b"").unwrap();
        set_mode(&store.file(), mode);
        let (file, mode) = (store.file().display().to_string(), format!("mode {mode:o}"));
        let cure = format!("`chmod 600 {file}`");
        is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &[&mode, &cure]);
    }
}

#[test]
fn a_store_that_others_may_open_is_refused_from_then_on() {
    let store = Store::new();
    let lock = store.lock("k");
    lock.try_acquire().unwrap().expect("nobody holds it").release().unwrap();
    set_mode(&store.file(), 0o644);
    is_refused(&lock, NodeErrorKind::UnfitStore, &["mode 644"]);
    set_mode(&store.file(), 0o600);
    lock.try_acquire().unwrap().expect("nobody holds it").release().unwrap();
}

#[test]
fn a_directory_that_its_group_may_write_is_refused_with_the_cure() {
    let store = Store::new();
    let directory = store.directory.path();
    let inner = directory.join("inner");
    fs::create_dir(&inner).unwrap();
    let cure = format!("`chmod go-w {}`", directory.display());
    for file in [store.file(), inner.join("locks.db")] {
        // The group of root, or of a number that no account has.
        set_mode(directory, 0o770);
        if !rustix::process::geteuid().is_root() {
            set_mode(directory, 0o772);
        }
        is_refused(&connect(&file).lock("k"), NodeErrorKind::UnfitStore, &["(mode 77", &cure]);
        set_mode(directory, 0o700);
        set_mode(&inner, 0o700);
        connect(&file).lock("k").try_acquire().unwrap().expect("free").release().unwrap();
    }
}

/// In a directory such as /tmp anybody may make one, and lead it elsewhere later.
#[test]
fn a_link_to_a_file_is_refused_and_the_file_left_alone() {
    let store = Store::new();
    let other = store.directory.path().join("mine.sqlite");
    let sql = rusqlite::Connection::open(&other).unwrap();
    sql.execute_batch("CREATE TABLE notes (note TEXT)").unwrap();
    drop(sql);
    set_mode(&other, 0o600);
    let before = fs::read(&other).unwrap();
    symlink(&other, store.file()).unwrap();
    let file = store.file().display().to_string();
    is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &[&file, "is a symbolic link"]);
    assert_eq!(fs::read(&other).unwrap(), before);
    assert_eq!(entries(store.directory.path()), ["locks.db", "mine.sqlite"]);
}

/// A link of one's own, or of root's as /var/run is, leads where one wants.
#[test]
fn a_directory_behind_a_link_is_used_unless_another_user_owns_the_link() {
    let store = Store::new();
    let (real, link) = (store.directory.path().join("real"), store.directory.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink("real", &link).unwrap();
    let through = connect(&link.join("locks.db")).lock("k");
    let guard = through.try_acquire().unwrap().expect("nobody holds it");
    let direct = connect(&real.join("locks.db")).lock("k");
    assert!(direct.try_acquire().unwrap().is_none(), "it is one store");
    guard.release().unwrap();
    // Only root can give links away.
    if rustix::process::geteuid().is_root() {
        lchown(&link, Some(4242), None).unwrap();
        let words = [link.to_str().unwrap(), "symbolic link of another user (number 4242)"];
        let lock = connect(&link.join("locks.db")).lock("k");
        is_refused(&lock, NodeErrorKind::UnfitStore, &words);
    }
}

/// Under each name SQLite would keep a journal of its own, and play back only that.
#[test]
fn a_file_with_two_names_is_refused() {
    let store = Store::new();
    let lock = store.lock("k");
    lock.try_acquire().unwrap().expect("nobody holds it").release().unwrap();
    let other = store.directory.path().join("other.db");
    fs::hard_link(store.file(), &other).unwrap();
    is_refused(&lock, NodeErrorKind::UnfitStore, &["has 2 names"]);
    is_refused(&connect(&other).lock("k"), NodeErrorKind::UnfitStore, &["has 2 names"]);
    fs::remove_file(&other).unwrap();
    lock.try_acquire().unwrap().expect("nobody holds it").release().unwrap();
}

/// SQLite would read it in place of the store.
#[test]
fn a_log_of_another_mode_beside_the_store_is_refused() {
    for suffix in ["db-wal", "db-shm"] {
        let store = Store::new();
        let log = store.file().with_extension(suffix);
        fs::write(&log, b"").unwrap();
        let words = [log.to_str().unwrap(), "remove it"];
        is_refused(&store.lock("k"), NodeErrorKind::UnfitStore, &words);
    }
}

/// An unknown file system may be shared as well as one that is known to be.
#[test]
fn a_file_system_that_is_not_known_to_be_local_is_refused() {
    let lock = connect(Path::new("/proc/tenure-test.db")).lock("k");
    let words = ["/proc is on a file system (type 0x9fa0)", "use a server"];
    is_refused(&lock, NodeErrorKind::UnfitStore, &words);
}

/// A user with write access there may put another file in its place.
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
fn a_store_that_cannot_be_created_is_unreachable() {
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
    let mut names: Vec<_> = names.filter(|name| name != "owner.lock").collect();
    names.sort();
    names
}

/// Reproduces: who had the store open went on in the deleted file, and excluded nobody.
#[test]
fn clients_leave_a_store_that_was_deleted() {
    let store = Store::new();
    let before = store.lock("k");
    let guard = before.acquire().unwrap();
    fs::remove_file(store.file()).unwrap();
    let next = store.lock("k").try_acquire().unwrap().expect("a store that is new");
    assert!(before.try_acquire().unwrap().is_none(), "two hold the lock");
    assert!(matches!(
        guard.release(),
        Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { .. }, .. }))
    ));
    next.release().unwrap();
}

/// Reproduces: another store is put in its place, by a name that leads there now.
#[test]
fn clients_leave_a_store_that_was_replaced() {
    let store = Store::new();
    let other = store.directory.path().join("other.db");
    let in_other = connect(&other).lock("k").acquire().unwrap();
    let before = store.lock("k");
    let guard = before.acquire().unwrap();
    fs::rename(&other, store.file()).unwrap();
    assert!(before.try_acquire().unwrap().is_none(), "two hold the lock");
    assert!(matches!(
        guard.release(),
        Err(ReleaseError::NotHeld(Loss { reason: LossReason::Taken { .. }, .. }))
    ));
    assert!(store.lock("k").try_acquire().unwrap().is_none());
    drop(in_other);
}
