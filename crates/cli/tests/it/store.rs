//! The embedded store: many that wait for it; and when it cannot be used 69, and one line that says
//! what to look at.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use tenure_testkit::{TempDir, eventually, raised_at_the_end, scale};

use crate::tool::{TENURE, Tenure};

/// Locks and runs, in every way of waiting, and expects the outcome to be unknown.
fn is_indeterminate(file: &Path, says: &[&str]) {
    let url = format!("file://{}", file.display());
    for options in [&[][..], &["-n"], &["--wait", "200ms"]] {
        let run = Tenure::new().url(&url).args(options).args(["k"]).sh("echo ran");
        run.run().code(69).stdout("").says(&[UNKNOWN, file.to_str().unwrap()]).says(says);
    }
}

const UNKNOWN: &str = "could not determine whether the lock \"k\" is free";

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_store_on_a_full_disk_exits_69_and_is_not_busy() {
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
        "tenure: {UNKNOWN}: the store {at}/locks.db has no room left on its disk: \
         database or disk is full; make room on that disk, or name another file with \
         --server file:///path\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), line.repeat(2));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "69\n69\nran\n0\n");
}

/// In a world of its own, whose user has another home: where the store is depends on nothing else.
#[test]
fn an_unusable_local_store_exits_69() {
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
         rm -r locks.db*
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
    assert!(lines[1].contains("the store local: has no room left on its disk"), "{said}");
    assert!(lines.iter().all(|line| line.contains(UNKNOWN)), "{said}");
}

/// A world of its own, whose user has this home.
fn at_home(dir: &TempDir, script: &str) -> (String, String) {
    let home = dir.path().display();
    let script = format!(
        "echo me:x:0:0::{home}:/bin/sh > {home}/passwd
         mount --bind {home}/passwd /etc/passwd
         {script}"
    );
    let mut command = tenure_testkit::on_small_disk(dir.path());
    let output = command.args(["sh", "-c", &script]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Whatever the umask takes away, and be it everything.
#[test]
fn the_local_store_is_accessible_to_this_user_only() {
    for umask in ["777", "000", "077", "277"] {
        let dir = TempDir::new();
        let modes =
            "for one in .local .local/state .local/state/tenure .local/state/tenure/locks.db
             do stat -c %a $one; done";
        let (said, errors) = at_home(
            &dir,
            &format!(
                "cd {}; umask {umask}
                 {TENURE} run --local -n k echo ran; echo $?
                 {modes}
                 {TENURE} run --local -n k echo ran; echo $?",
                dir.path().display()
            ),
        );
        assert_eq!(errors, "", "{umask}");
        assert_eq!(said, "ran\n0\n700\n700\n700\n600\nran\n0\n", "{umask}");
    }
}

/// The store would depend on the working directory.
#[test]
fn a_relative_home_exits_69_and_creates_nothing() {
    let dir = TempDir::new();
    let at = dir.path().display();
    // The user's account has no home, so the variable is asked.
    let script = format!(
        "cd {at}; echo other:x:1:1::/:/bin/sh > {at}/passwd
         for home in relative .
         do HOME=$home {TENURE} run --local -n k echo ran; echo $?; done
         ls -A"
    );
    let (said, errors) = at_home(&dir, &script);
    assert_eq!(said, "69\n69\npasswd\n", "{errors}");
    assert!(errors.contains("HOME is the relative path \"relative\""), "{errors}");
    assert!(errors.contains("set HOME to an absolute path"), "{errors}");
}

/// Its journal would be beside the other path.
#[test]
fn a_store_that_is_a_mount_point_exits_69() {
    let dir = TempDir::new();
    let at = dir.path().display();
    let script = format!(
        "touch {at}/real.db {at}/locks.db; chmod 600 {at}/*.db
         mount --bind {at}/real.db {at}/locks.db
         {TENURE} run --server file://{at}/locks.db -n k echo ran; echo $?"
    );
    let (said, errors) = at_home(&dir, &script);
    assert_eq!(said, "69\n", "{errors}");
    assert!(errors.contains("locks.db is mounted by itself"), "{errors}");
    assert!(errors.contains("mount its directory instead"), "{errors}");
}

/// Number 4242 stands for the other user. Only root can give files away: who is not meets a file
/// of root's instead.
#[test]
fn a_store_of_another_user_exits_69_and_names_file_and_user() {
    if !rustix::process::geteuid().is_root() {
        is_indeterminate(Path::new("/etc/passwd"), &["belongs to another user (number 0)"]);
        return;
    }
    let dir = TempDir::new();
    let file = dir.path().join("locks.db");
    fs::write(&file, "").unwrap();
    set_mode(&file, 0o600);
    chown(&file, Some(4242), None).unwrap();
    let said = format!("{} belongs to another user (number 4242)", file.display());
    is_indeterminate(&file, &[&said, "name another file"]);
    fs::remove_file(&file).unwrap();
    chown(dir.path(), Some(4242), None).unwrap();
    let said = format!("{} belongs to another user (number 4242)", dir.path().display());
    is_indeterminate(&file, &[&said, "name another file"]);
    assert!(!file.exists());
}

/// Nothing is down, and there is no address.
#[test]
fn a_mistyped_path_exits_69_and_is_shown_as_a_path() {
    let dir = TempDir::new();
    let missing = dir.path().join("mising");
    let said = format!("{}: No such file or directory", missing.display());
    is_indeterminate(&missing.join("locks.db"), &["cannot be opened", &said, "is the path right?"]);
}

#[test]
fn a_file_that_is_no_store_exits_69_and_stays_unchanged() {
    let dir = TempDir::new();
    let file = dir.path().join("notes");
    let text = "not a store, but longer than a header has to be: ".repeat(40);
    fs::write(&file, &text).unwrap();
    set_mode(&file, 0o600);
    is_indeterminate(
        &file,
        &["is not fit for a store of locks", "not a database", "name another file"],
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

/// All want the processor at once, and a process that is kept from it inside its transaction keeps
/// everybody else from theirs.
#[test]
fn all_endless_waiters_on_a_busy_host_are_served() {
    let dir = TempDir::new();
    let url = format!("file://{}/locks.db", dir.path().display());
    let served = dir.path().join("served");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = raised_at_the_end(&is_over);
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let go_on = dir.path().join("go on");
        let holder = Tenure::new().url(&url).args(["-n", "k"]);
        let until = format!("while [ ! -e '{}' ]; do sleep 0.05; done", go_on.display());
        let holder = holder.sh(&until).start();
        let is_held = || Tenure::to("status").url(&url).args(["k"]).run().code == Some(0);
        eventually(LIMIT, "it is held", is_held);
        let waiters = scale(200, 500);
        let script = format!("echo served >> '{}'", served.display());
        let start = |_| Tenure::new().url(&url).args(["k"]).sh(&script).start();
        let herd: Vec<_> = (0..waiters).map(start).collect();
        fs::write(&go_on, "").unwrap();
        holder.wait_at_most(HERD).code(0).silent();
        // Nobody gave up, and no release was left unconfirmed.
        herd.into_iter().for_each(|one| drop(one.wait_at_most(HERD).code(0).silent()));
        assert_eq!(fs::read_to_string(&served).unwrap().lines().count(), waiters);
    });
}

const LIMIT: Duration = Duration::from_secs(60);

/// Twenty times what two hundred waiters take beside two busy loops.
const HERD: Duration = Duration::from_secs(100);
