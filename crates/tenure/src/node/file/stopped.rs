//! Processes that were stopped while they held the store's file lock.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use rustix::process::{Pid, Signal, kill_process};

/// Lets stopped processes finish their transaction, and stops them again when it is dropped.
///
/// SIGSTOP and Ctrl-Z can hit a process inside its transaction, which takes some 50 µs; it then
/// keeps the lock for as long as it is stopped, and nobody else can have it. It runs on for the few
/// milliseconds until its lock is free.
#[derive(Debug)]
pub(super) struct Nudge(Vec<Pid>);

impl Nudge {
    /// Wakes the stopped processes that hold a lock on this file, if there are any of this user's.
    pub(super) fn holders_of(file: &Path) -> Option<Self> {
        let inode = fs::metadata(file).ok()?.ino();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let holders: Vec<Pid> = locks
            .lines()
            .filter_map(|lock| holder(lock, inode))
            .filter(|pid| is_stopped(*pid) && kill_process(*pid, Signal::CONT).is_ok())
            .collect();
        (!holders.is_empty()).then_some(Self(holders))
    }
}

impl Drop for Nudge {
    fn drop(&mut self) {
        for pid in &self.0 {
            // One that is gone needs no stopping.
            _ = kill_process(*pid, Signal::STOP);
        }
    }
}

/// The holder that a line of `/proc/locks` names, when it is about this file:
/// `1: POSIX  ADVISORY  WRITE 4711 fe:01:131072 0 EOF`.
fn holder(lock: &str, inode: u64) -> Option<Pid> {
    let mut fields = lock.split_ascii_whitespace().skip(4);
    let pid = fields.next()?.parse().ok()?;
    let file = fields.next()?;
    let is_ours = file.rsplit(':').next()?.parse() == Ok(inode);
    Pid::from_raw(pid).filter(|_| is_ours)
}

fn is_stopped(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    // The name, in parentheses, may hold anything; the state follows the last of them.
    stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_files_name_nobody() {
        let line = "1: POSIX  ADVISORY  WRITE 4711 fe:01:131072 1073741826 1073742335";
        assert_eq!(holder(line, 131_072), Pid::from_raw(4711));
        assert_eq!(holder(line, 131_073), None);
        // A waiter's line has an arrow before its kind.
        assert_eq!(holder("1: -> POSIX  ADVISORY  WRITE 4711 fe:01:131072 0 0", 131_072), None);
        assert_eq!(holder("", 1), None);
    }
}
