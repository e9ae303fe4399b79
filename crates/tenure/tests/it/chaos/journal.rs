//! What a process believes, written down while it does.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    time::Duration,
};

use tenure::LockGuard;

use super::now;

/// The file that all processes write: a line is one write, so lines never mix.
pub(crate) struct Journal {
    file: File,
    /// The place of the process that writes.
    place: String,
}

impl Journal {
    pub(crate) fn open(log: &Path, place: &str) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(log).unwrap();
        Self { file, place: place.to_owned() }
    }

    /// Adds a line.
    pub(crate) fn note(&self, line: &str) {
        (&self.file).write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// When the process was stopped, and when it continued.
    pub(crate) fn stopped(&self, place: usize, from: u64, to: u64) {
        self.note(&format!("stopped {place} {from} {to}"));
    }

    /// Nobody was patient enough to be served.
    pub(crate) fn given_up(&self) {
        self.note("given-up");
    }

    /// One has waited as long as nobody has to.
    pub(crate) fn lost(&self, lock: &str, called: u64, why: &dyn std::error::Error) {
        let waited_ms = (now() - called) / 1_000_000;
        self.note(&format!("lost {lock} {} after {waited_ms} ms: {why}", self.place));
    }

    /// One holds the lock, who had called for it then.
    pub(crate) fn held(&self, lock: &str, called: u64, guard: &LockGuard) -> Belief<'_> {
        let (name, from) = (format!("{lock} {}", guard.fencing_token()), now());
        let until = valid_until(guard).unwrap_or(0);
        self.note(&format!("held {name} {} {called} {from} {until}", self.place));
        Belief { journal: self, name, until }
    }
}

/// One hold, which its process believes in until it is notified of the loss.
pub(crate) struct Belief<'a> {
    journal: &'a Journal,
    /// The lock and the number.
    name: String,
    until: u64,
}

impl Belief<'_> {
    /// Looks whether the lease is valid, and writes down for how long.
    pub(crate) fn look(&mut self, guard: &LockGuard) -> Option<Duration> {
        let left = guard.valid_for()?;
        // Two readings of one deadline differ by the time between two readings of the clock.
        let until = valid_until(guard)?;
        if until > self.until + 1_000_000 {
            self.until = until;
            self.journal.note(&format!("valid {} {until}", self.name));
        }
        Some(left)
    }

    /// The hold is over: it is about to be released, or was lost.
    pub(crate) fn end(self) {
        self.journal.note(&format!("ended {} {}", self.name, now()));
    }
}

/// Until when a lease is valid unless it is renewed, or a little sooner.
fn valid_until(guard: &LockGuard) -> Option<u64> {
    let at = now();
    let left = guard.valid_for()?;
    Some(at + u64::try_from(left.as_nanos()).unwrap_or(u64::MAX / 2))
}
