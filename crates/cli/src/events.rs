//! The signals and wake-ups that the tool waits for, through one self-pipe.

use std::{
    collections::VecDeque,
    future::Future,
    io::{self, Write},
    os::{fd::AsFd as _, unix::net::UnixStream},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2},
    iterator::{backend::SignalDelivery, exfiltrator::SignalOnly},
};

use crate::system::{Moment, SystemTimer, is_ignored, receive};

/// Something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A future that was polled wants to be polled again.
    Woken,
    /// A signal came for the tool.
    Signal(i32),
}

/// What happens, in no particular order.
///
/// Blocking calls could not be given up when a signal comes: so futures are polled here, on the
/// main thread, which sleeps on a timer and on one socket that signal handlers and wakers write
/// to.
#[derive(Debug)]
pub(crate) struct Events {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
    came: VecDeque<i32>,
    self_pipe: Arc<SelfPipe>,
    waker: Waker,
    timer: SystemTimer,
}

impl Events {
    /// Reports signals from now on, in place of their default action.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn watch() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        let self_pipe =
            Arc::new(SelfPipe { woken: AtomicBool::new(false), socket: writer.try_clone()? });
        let wanted = HANDED_ON.into_iter().filter(|signal| !is_ignored(*signal));
        // Watched even when it was ignored: else the kernel would throw away how the command ended.
        let wanted: Vec<i32> = wanted.chain([SIGCHLD]).collect();
        receive(&wanted);
        let delivery = SignalDelivery::with_pipe(reader, writer, SignalOnly, wanted)?;
        let waker = Waker::from(Arc::clone(&self_pipe));
        Ok(Self { delivery, came: VecDeque::new(), self_pipe, waker, timer: SystemTimer::new()? })
    }

    /// Reports one more signal, unless the tool was started with it ignored.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn watch_also(&self, signal: i32) -> io::Result<()> {
        if is_ignored(signal) {
            return Ok(());
        }
        receive(&[signal]);
        self.delivery.handle().add_signal(signal)
    }

    /// The next event; `None` when there is none until then.
    pub(crate) fn next(&mut self, until: Option<Moment>) -> Option<Event> {
        loop {
            self.came.extend(self.delivery.pending());
            if let Some(signal) = self.came.pop_front() {
                return Some(Event::Signal(signal));
            }
            if self.self_pipe.woken.swap(false, Ordering::AcqRel) {
                return Some(Event::Woken);
            }
            if until.is_some_and(|until| until <= Moment::now()) {
                return None;
            }
            self.timer.wait(self.delivery.get_read().as_fd(), until);
        }
    }

    /// Brings about an [`Event::Woken`], from any thread.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Polls a future. When it is not ready, an [`Event::Woken`] comes once it may be.
    pub(crate) fn poll<F: Future>(&self, future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// Blocks until a future is ready; signals that come meanwhile change nothing any more.
    pub(crate) fn block_on<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            if let Some(output) = self.poll(future.as_mut()) {
                return output;
            }
            _ = self.next(None);
        }
    }
}

/// The signals that end a wait for the lock, and that are handed on to the command.
const HANDED_ON: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

#[derive(Debug)]
struct SelfPipe {
    woken: AtomicBool,
    socket: UnixStream,
}

impl Wake for SelfPipe {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            // A full socket still wakes the reader.
            _ = (&self.socket).write(&[0]);
        }
    }
}
