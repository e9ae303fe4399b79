//! Timers on the clock of leases.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::Future,
    io,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tenure_core::Timestamp;

use super::{Pulse, now};

/// The engine's timers: one alarm, armed for the earliest of them.
///
/// tokio's own timers stop during suspend. The alarm is set only when an earlier timer than the
/// one it is set for arrives; a timer that is dropped leaves it, and it then rings for nothing.
/// So an op whose answer comes before its time limit costs no system call here.
pub(crate) struct Timers {
    alarm: alarm::Alarm,
    armed: Cell<Timestamp>,
    pulse: Arc<Pulse>,
    sleepers: RefCell<BTreeMap<(Timestamp, u64), Waker>>,
    next_id: Cell<u64>,
}

impl Timers {
    /// Must be called inside the engine's runtime.
    pub(crate) fn new(pulse: &Arc<Pulse>) -> io::Result<Rc<Self>> {
        Ok(Rc::new(Self {
            alarm: alarm::Alarm::new()?,
            armed: Cell::new(Timestamp::MAX),
            pulse: Arc::clone(pulse),
            sleepers: RefCell::new(BTreeMap::new()),
            next_id: Cell::new(0),
        }))
    }

    /// Sleeps until `at`; without end when that is [`Timestamp::MAX`].
    pub(crate) fn sleep_until(self: &Rc<Self>, at: Timestamp) -> Sleep {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        Sleep { timers: Rc::clone(self), at, id, queued: false }
    }

    /// Wakes sleepers without end.
    ///
    /// # Errors
    ///
    /// When the alarm cannot be read, which ends the engine.
    pub(crate) async fn run(&self) -> io::Result<()> {
        loop {
            self.alarm.rings().await?;
            self.armed.set(Timestamp::MAX);
            let now = now();
            self.pulse.beat(now);
            loop {
                let mut sleepers = self.sleepers.borrow_mut();
                match sleepers.first_entry() {
                    Some(first) if first.key().0 <= now => {
                        let waker = first.remove();
                        drop(sleepers);
                        waker.wake();
                    }
                    Some(first) => {
                        let at = first.key().0;
                        drop(sleepers);
                        self.arm(at)?;
                        break;
                    }
                    None => break,
                }
            }
        }
    }

    fn arm(&self, at: Timestamp) -> io::Result<()> {
        if at < self.armed.get() {
            self.armed.set(at);
            self.pulse.plan(at);
            self.alarm.set(at)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Timers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timers").field("armed", &self.armed.get()).finish_non_exhaustive()
    }
}

/// See [`Timers::sleep_until`].
#[derive(Debug)]
pub(crate) struct Sleep {
    timers: Rc<Timers>,
    at: Timestamp,
    id: u64,
    queued: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        if at == Timestamp::MAX {
            return Poll::Pending;
        }
        if now() >= at {
            return Poll::Ready(());
        }
        let key = (at, self.id);
        self.timers.sleepers.borrow_mut().insert(key, cx.waker().clone());
        self.queued = true;
        match self.timers.arm(at) {
            Ok(()) => Poll::Pending,
            // Without an alarm nothing would ever be due: late is worse than early.
            Err(_) => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if self.queued {
            self.timers.sleepers.borrow_mut().remove(&(self.at, self.id));
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod alarm {
    use std::{io, os::fd::OwnedFd};

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tenure_core::Timestamp;
    use tokio::io::unix::AsyncFd;

    /// A timerfd on the boot-time clock: it rings on time after a suspend.
    pub(super) struct Alarm(AsyncFd<OwnedFd>);

    impl Alarm {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Boottime, flags)?;
            #[expect(
                unsafe_code,
                reason = "the runtime's safe constructor is deprecated as unsound"
            )]
            // SAFETY: an `OwnedFd` is open, keeps its number, and is owned by the `AsyncFd` alone.
            let fd = unsafe { AsyncFd::register(fd) }?;
            Ok(Self(fd))
        }

        pub(super) fn set(&self, at: Timestamp) -> io::Result<()> {
            let nanos = at.as_nanos();
            let value = Timespec {
                tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
                // Zero in both fields would disarm it.
                tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0).max(1),
            };
            let once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let spec = Itimerspec { it_interval: once, it_value: value };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &spec)?;
            Ok(())
        }

        pub(super) async fn rings(&self) -> io::Result<()> {
            loop {
                let mut ready = self.0.readable().await?;
                let read = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut [0; 8])?));
                match read {
                    Ok(result) => return result.map(|_| ()),
                    Err(_would_block) => {}
                }
            }
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod alarm {
    use std::{cell::Cell, io, time::Duration};

    use tenure_core::Timestamp;

    use crate::clock;

    /// Looks at the clock of leases at least this often, since this timer stops during suspend.
    const MAX_NAP: Duration = Duration::from_millis(250);

    pub(super) struct Alarm {
        at: Cell<Timestamp>,
        set: tokio::sync::Notify,
    }

    impl Alarm {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self { at: Cell::new(Timestamp::MAX), set: tokio::sync::Notify::new() })
        }

        pub(super) fn set(&self, at: Timestamp) -> io::Result<()> {
            self.at.set(at);
            self.set.notify_one();
            Ok(())
        }

        pub(super) async fn rings(&self) -> io::Result<()> {
            while now() < self.at.get() {
                let nap = self.at.get().since(now()).min(MAX_NAP);
                tokio::select! {
                    () = tokio::time::sleep(nap) => {}
                    () = self.set.notified() => {}
                }
            }
            self.at.set(Timestamp::MAX);
            Ok(())
        }
    }
}
