//! The wall clock of a server, in the hands of the test.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::TempDir;

/// The wall clock of one server, or of several that were given the same one.
///
/// Only servers built with [`Builder::shim`](crate::Builder::shim) or
/// [`Builder::clock`](crate::Builder::clock) have one. Clones are handles to the same clock. A
/// change holds from the next command the server starts; its own timers run on.
#[derive(Clone, Debug)]
pub struct Clock {
    shared: Arc<Mutex<ClockShared>>,
    path: PathBuf,
}

impl Clock {
    /// A clock that runs with the real time.
    #[must_use]
    pub fn new() -> Self {
        let dir = TempDir::new();
        let path = dir.path().join("clock");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.expect("make a clock file");
        file.set_len(FILE_LEN).expect("size a clock file");
        let shared =
            ClockShared { state: ClockState::Running { offset_us: 0 }, generation: 0, file, dir };
        Self { shared: Arc::new(Mutex::new(shared)), path }
    }

    /// Stops the clock at the time it shows, which is returned.
    #[expect(clippy::must_use_candidate, reason = "mostly called for its effect")]
    pub fn freeze(&self) -> i64 {
        let mut shared = self.lock();
        let at_us = shared.state.now_us();
        shared.set(ClockState::Frozen { at_us });
        at_us
    }

    /// Stops the clock at a time, in microseconds since 1970.
    pub fn freeze_at_us(&self, at_us: i64) {
        self.lock().set(ClockState::Frozen { at_us });
    }

    /// Moves the clock forward, whether it runs or stands.
    pub fn advance(&self, by: Duration) {
        self.step_us(i64::try_from(by.as_micros()).expect("less than 292,000 years"));
    }

    /// Moves the clock, backward when negative, whether it runs or stands.
    pub fn step_ms(&self, by: i64) {
        self.step_us(by * 1000);
    }

    /// Lets a stopped clock run on from the time it shows.
    pub fn thaw(&self) {
        let mut shared = self.lock();
        let offset_us = shared.state.now_us() - real_us();
        shared.set(ClockState::Running { offset_us });
    }

    /// The time it shows, in microseconds since 1970.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        self.lock().state.now_us()
    }

    /// The file by which the shim learns the time.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn step_us(&self, by: i64) {
        let mut shared = self.lock();
        let moved = match shared.state {
            ClockState::Running { offset_us } => ClockState::Running { offset_us: offset_us + by },
            ClockState::Frozen { at_us } => ClockState::Frozen { at_us: at_us + by },
        };
        shared.set(moved);
    }

    fn lock(&self) -> MutexGuard<'_, ClockShared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
struct ClockShared {
    state: ClockState,
    generation: u8,
    file: File,
    #[expect(dead_code, reason = "removes the directory of the file on drop")]
    dir: TempDir,
}

impl ClockShared {
    /// Writes the slot that does not count, then makes it count; `shim/clock.c` says why.
    fn set(&mut self, state: ClockState) {
        let (mode, value_us) = match state {
            ClockState::Running { offset_us } => (0_i64, offset_us),
            ClockState::Frozen { at_us } => (1_i64, at_us),
        };
        let next = self.generation.wrapping_add(1);
        let slot = 8 + 16 * u64::from(next & 1);
        let bytes = [mode.to_ne_bytes(), value_us.to_ne_bytes()].concat();
        self.file.write_all_at(&bytes, slot).expect("write the clock file");
        self.file.write_all_at(&[next], 0).expect("write the clock file");
        self.generation = next;
        self.state = state;
    }
}

#[derive(Clone, Copy, Debug)]
enum ClockState {
    Running { offset_us: i64 },
    Frozen { at_us: i64 },
}

impl ClockState {
    fn now_us(self) -> i64 {
        match self {
            Self::Running { offset_us } => real_us() + offset_us,
            Self::Frozen { at_us } => at_us,
        }
    }
}

fn real_us() -> i64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().expect("this machine's clock is past 1970");
    i64::try_from(since.as_micros()).expect("this machine's clock is not far in the future")
}

/// The generation in 8 bytes, and two slots of 16.
const FILE_LEN: u64 = 40;
