//! The embedded store when it cannot be used: 69, and one line that says what to look at.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
};

use tenure_testkit::TempDir;

use crate::tool::{TENURE, Tenure};

/// Locks and runs, in every way of waiting, and expects to be told that nobody can tell.
fn is_untold(file: &Path, says: &[&str]) {
    let url = format!("file://{}", file.display());
    for options in [&[][..], &["-n"], &["--wait", "200ms"]] {
        let run = Tenure::new().url(&url).args(options).args(["k"]).sh("echo ran");
        run.run().code(69).stdout("").says(&[CANNOT_TELL, file.to_str().unwrap()]).says(says);
    }
}

const CANNOT_TELL: &str = "cannot tell whether the lock \"k\" is free";

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_store_on_a_full_disk_is_69_and_never_busy() {
    let dir = TempDir::new();
    let at = dir.path().display();
    let script = format!(
        "cat /dev/zero > {at}/ballast 2> {at}/full
         {TENURE} run --server file://{at}/locks.db k echo ran; echo $?
         {TENURE} run --server file://{at}/locks.db -n k echo ran; echo $?
         rm {at}/ballast
         {TENURE} run --server file://{at}/locks.db -n k echo ran; echo $?"
    );
    let mut command = tenure_testkit::on_small_disk(dir.path());
    let output = command.args(["sh", "-c", &script]).output().unwrap();
    let line = format!(
        "tenure: {CANNOT_TELL}: the server {at}/locks.db has no room left on its disk: \
         database or disk is full; make room on that disk, or name another file with \
         --server file:///path\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), line.repeat(2));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "69\n69\nran\n0\n");
}

/// In a world of its own, whose user has another home: where the store is depends on nothing else.
#[test]
fn this_hosts_own_store_is_69_when_it_cannot_be_used() {
    let dir = TempDir::new();
    let home = dir.path().display();
    let run = format!("{TENURE} run --local -n k echo ran; echo $?");
    let script = format!(
        "echo me:x:0:0::{home}:/bin/sh > {home}/passwd
         mount --bind {home}/passwd /etc/passwd
         {run}
         cd {home}/.local/state/tenure
         yes nothing | head -c 4096 > locks.db
         {run}
         rm locks.db*
         cat /dev/zero > ballast 2> full
         {run}"
    );
    let mut command = tenure_testkit::on_small_disk(dir.path());
    let output = command.args(["sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n0\n69\n69\n", "{said}");
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].contains("file is not a database"), "{said}");
    assert!(lines[1].contains("the server local: has no room left on its disk"), "{said}");
    assert!(lines.iter().all(|line| line.contains(CANNOT_TELL)), "{said}");
}

/// Number 4242 stands for the other user. Only root can give files away: who is not meets a file
/// of root's instead.
#[test]
fn another_user_s_store_is_69_and_names_file_and_user() {
    if !rustix::process::geteuid().is_root() {
        is_untold(Path::new("/etc/passwd"), &["belongs to another user (number 0)"]);
        return;
    }
    let dir = TempDir::new();
    let file = dir.path().join("locks.db");
    fs::write(&file, "").unwrap();
    set_mode(&file, 0o600);
    chown(&file, Some(4242), None).unwrap();
    let said = format!("{} belongs to another user (number 4242)", file.display());
    is_untold(&file, &[&said, "name another file"]);
    fs::remove_file(&file).unwrap();
    chown(dir.path(), Some(4242), None).unwrap();
    let said = format!("{} belongs to another user (number 4242)", dir.path().display());
    is_untold(&file, &[&said, "name another file"]);
    assert!(!file.exists());
}

#[test]
fn a_file_that_is_no_store_is_69_and_left_as_it_is() {
    let dir = TempDir::new();
    let file = dir.path().join("notes");
    let text = "not a store, but longer than a header has to be: ".repeat(40);
    fs::write(&file, &text).unwrap();
    set_mode(&file, 0o600);
    is_untold(&file, &["is not fit for a store of locks", "not a database", "name another file"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}
