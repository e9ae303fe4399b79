//! Waiting on a clock that counts the time in which the machine is suspended.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime,
        timerfd_create, timerfd_settime,
    },
};

use crate::system::Moment;

/// The time since the machine was started.
pub(crate) fn since_start() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

/// A timer on the clock of leases. Time limits of `poll` stand still while the machine is
/// suspended, so a command would outlive its lease by the rest of them.
#[derive(Debug)]
pub(crate) struct SystemTimer(OwnedFd);

impl SystemTimer {
    /// A timer that is not set.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?))
    }

    /// Waits until something can be read there, or until that moment. May return early.
    pub(crate) fn wait(&self, reader: BorrowedFd<'_>, until: Option<Moment>) {
        // Zero would unset it.
        let at = until.map(|until| until.of_start().max(Duration::from_nanos(1)));
        let at = at.and_then(|at| Timespec::try_from(at).ok());
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: at.unwrap_or(never) };
        // Fails only for what is no timer, or no time.
        _ = timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting);
        let mut both =
            [PollFd::from_borrowed_fd(reader, PollFlags::IN), PollFd::new(&self.0, PollFlags::IN)];
        // Interrupted by a signal, or over: either way the caller looks again.
        _ = poll(&mut both, None);
    }
}
