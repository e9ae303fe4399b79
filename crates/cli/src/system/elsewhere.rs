//! What other systems than Linux do without.
//!
//! * Processes that leave the command's group are not found, so they outlive the loss of a lease.
//! * The command does not die with a tool that is killed.
//! * An inner `tenure run` does not know when an outer one kills it, so its lock ends with its TTL.
//! * The clock stands still while the machine is suspended.

use std::{ffi::OsString, io, os::fd::BorrowedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, Signal},
    time::{ClockId, clock_gettime},
};

use super::Moment;

/// The time since some moment before the tool was started.
pub(crate) fn since_start() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// A time limit of `poll`.
#[derive(Debug)]
pub(crate) struct SystemTimer;

impl SystemTimer {
    #[expect(clippy::unnecessary_wraps, reason = "it fails on Linux")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn wait(&self, reader: BorrowedFd<'_>, until: Option<Moment>) {
        let left = until.map(|until| until.since(Moment::now()));
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        let mut readers = [PollFd::from_borrowed_fd(reader, PollFlags::IN)];
        _ = poll(&mut readers, limit.as_ref());
    }
}

/// The C library keeps no signals for itself.
#[expect(clippy::reversed_empty_ranges, reason = "there are none")]
pub(crate) const RESERVED: std::ops::RangeInclusive<i32> = 1..=0;

pub(crate) fn is_reserved_ignored(_: i32) -> bool {
    false
}

pub(crate) fn ignore_reserved(_: i32) {}

/// There is no way to be the parent of orphans.
pub(crate) fn adopt_orphans() {}

/// There is no such signal.
#[expect(clippy::unnecessary_wraps, reason = "it fails on Linux")]
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(())
}

/// A process that is never found.
#[derive(Debug)]
pub(crate) struct ProcessInfo {
    pub(crate) pid: Pid,
    pub(crate) name: String,
    pub(crate) group: i32,
}

impl ProcessInfo {
    pub(crate) fn find(_: Pid) -> Option<Self> {
        None
    }

    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "it is needed on Linux")]
    pub(crate) fn signal(&self, _: Signal) -> io::Result<()> {
        Ok(())
    }
}

/// Nobody lists the processes below the tool.
pub(crate) fn descendants(_: &[ProcessInfo]) -> Vec<ProcessInfo> {
    Vec::new()
}

/// No file passes the moment to inner tools.
#[derive(Debug)]
pub(crate) struct Deadline;

impl Deadline {
    pub(crate) const VARIABLE: &str = "TENURE_DEADLINES";

    pub(crate) fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "it is needed on Linux")]
    pub(crate) fn variable(&self) -> OsString {
        OsString::new()
    }

    #[expect(clippy::unused_self, reason = "it is needed on Linux")]
    pub(crate) fn publish(&self, _: Moment) {}

    pub(crate) fn of_outer() -> Vec<(u32, Moment)> {
        Vec::new()
    }
}
