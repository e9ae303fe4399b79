//! Worlds of a process's own: a disk that fills up, mounts that nobody else sees, another clock.

use std::path::Path;
use std::process::Command;

/// The beginning of a command that runs with a file system of 1 MiB of its own at the directory:
/// the program and its arguments are to be added.
///
/// Nobody else sees that file system, and it ends with the command. Who is not root needs the
/// right to make user namespaces; without it the command ends at once, and says so.
#[must_use]
pub fn on_small_disk(at: &Path) -> Command {
    let mount = "mount -t tmpfs -o size=1m,mode=700 tenure \"$0\" && exec \"$@\"";
    let mut command = with_mounts(mount);
    command.arg(at);
    command
}

/// The beginning of a command that runs behind the shell's `mount`, which nobody else sees: an
/// argument for its `$0`, then the program and its arguments are to be added.
#[must_use]
pub fn with_mounts(mount: &str) -> Command {
    let mut command = in_world_of_its_own(&["--mount"]);
    command.args(["sh", "-c", mount]);
    command
}

/// The beginning of a command whose clocks that start with the boot are this many seconds ahead.
#[must_use]
pub fn in_another_time(seconds: i64) -> Command {
    let ahead = seconds.to_string();
    in_world_of_its_own(&[
        "--time",
        "--boottime",
        &ahead,
        "--monotonic",
        &ahead,
        "--fork",
        "--kill-child",
    ])
}

fn in_world_of_its_own(options: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(options);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command
}
