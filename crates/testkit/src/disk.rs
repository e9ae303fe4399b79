//! Disks that fill up.

use std::path::Path;
use std::process::Command;

/// The beginning of a command that runs with a file system of 1 MiB of its own at the directory:
/// the program and its arguments are to be added.
///
/// Nobody else sees that file system, and it ends with the command. Who is not root needs the
/// right to make user namespaces; without it the command ends at once, and says so.
#[must_use]
pub fn on_small_disk(at: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    let mount = "mount -t tmpfs -o size=1m,mode=700 tenure \"$0\" && exec \"$@\"";
    command.args(["sh", "-c", mount]).arg(at);
    command
}
