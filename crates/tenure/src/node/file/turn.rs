//! Turns at the store: one client at a time asks SQLite for its lock.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, openat},
    io::Errno,
};
use tenure_core::{Backoff, Op};

use super::{
    place::{self, Identity},
    table::Fault,
};

/// Where clients take turns: a directory beside the store.
///
/// SQLite takes its lock in steps, and a process that has taken the first one keeps all others from
/// the last one. When hundreds of processes try at once on a busy host, hardly any transaction
/// succeeds. So they compete for a lock that has one step, and the winner alone asks SQLite.
/// Exclusion rests on SQLite's lock alone: a client without a turn is slower, and not wrong.
#[derive(Debug)]
pub(super) struct Turns(PathBuf);

/// One client's turn, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn(OwnedFd);

impl Turns {
    /// Makes the directory where that is possible.
    pub(super) fn at(directory: &Path) -> Self {
        // Without it SQLite's lock alone has to do.
        _ = place::make_private(directory);
        Self(directory.to_owned())
    }

    /// Which directory it is.
    pub(super) fn identity(&self) -> Option<Identity> {
        place::identity(&self.0).ok()
    }

    /// Takes a turn; `None` where the file system knows no such lock.
    ///
    /// # Errors
    ///
    /// `Fault::Busy` while it is another client's.
    pub(super) fn take(&self) -> Result<Option<Turn>, Fault> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(directory) = openat(CWD, &self.0, flags, Mode::empty()) else { return Ok(None) };
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Turn(directory))),
            Err(Errno::WOULDBLOCK) => Err(Fault::Busy),
            Err(_) => Ok(None),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Closing would not do: a process that was forked in the meantime has the descriptor, too.
        _ = flock(&self.0, FlockOperation::Unlock); // tidy: allow
    }
}

/// The pauses between one op's tries. The fewer others try, the sooner a lock is released or
/// renewed.
///
/// The kernel could wake clients in turn. But one that is stopped while it waits for the kernel
/// would keep those behind it asleep.
pub(super) fn pauses(op: &Op) -> Backoff {
    let longest = match op {
        Op::Acquire { .. } | Op::Poll(_) | Op::Inspect { .. } | Op::Clock => MAX_PAUSE,
        _ => MAX_URGENT_PAUSE,
    };
    Backoff::new(FIRST_PAUSE, longest)
}

/// Some transactions long.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Of ops that shorten the queue of the others.
const MAX_URGENT_PAUSE: Duration = Duration::from_millis(10);

/// A try costs some 20 µs. So five hundred clients that try take 5 % of a core.
const MAX_PAUSE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use tenure_testkit::TempDir;

    use super::*;

    #[test]
    fn one_client_at_a_time_has_a_turn() {
        let directory = TempDir::new();
        let (one, other) = (Turns::at(directory.path()), Turns::at(directory.path()));
        let turn = one.take().unwrap();
        assert!(turn.is_some());
        assert!(matches!(other.take(), Err(Fault::Busy)));
        // As a forked process has it.
        let copy = turn.as_ref().map(|turn| turn.0.try_clone().unwrap());
        drop(turn);
        assert!(other.take().unwrap().is_some());
        drop(copy);
    }

    #[test]
    fn without_its_directory_the_store_is_used_without_turns() {
        let directory = TempDir::new();
        let turns = Turns::at(&directory.path().join("there is none/here"));
        assert!(turns.take().unwrap().is_none());
        assert!(turns.identity().is_none());
    }

    #[test]
    fn the_pauses_of_a_release_stay_short() {
        let longest = |op: &Op| {
            let mut pauses = pauses(op);
            (0..12).map(|_| pauses.next_delay(500)).max().unwrap()
        };
        assert_eq!(longest(&Op::Clock), MAX_PAUSE);
        assert_eq!(longest(&Op::Renew(Vec::new())), MAX_URGENT_PAUSE);
    }
}
