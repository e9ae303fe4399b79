//! Output that must arrive, and that nobody may read: it is written on a thread of its own, so that
//! signals and time limits are obeyed meanwhile.

use std::{
    io,
    sync::mpsc::{Receiver, TryRecvError, channel},
    task::Waker,
    thread,
};

use crate::{
    events::{Event, Events},
    exit,
    failure::Failure,
    system::{Moment, Standard},
};

/// What became of an output.
#[derive(Debug)]
pub(crate) enum Output {
    /// All of it is written.
    Written,
    /// It cannot be written.
    Failed(io::Error),
    /// A signal came first.
    Signal(i32),
}

/// Prints a line on standard output, until a signal comes or the time is over.
pub(crate) fn print(line: String, events: &mut Events, until: Moment) -> Output {
    let written = start(move || Standard::Output.write_all(line.as_bytes()), Some(events.waker()));
    loop {
        match written.try_recv() {
            Ok(Ok(())) => return Output::Written,
            Ok(Err(error)) => return Output::Failed(error),
            Err(TryRecvError::Disconnected) => return Output::Failed(no_thread()),
            Err(TryRecvError::Empty) => {}
        }
        match events.next(Some(until)) {
            Some(Event::Signal(signal)) if signal != signal_hook::consts::SIGCHLD => {
                return Output::Signal(signal);
            }
            Some(_) => {}
            None => return Output::Failed(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Prints a text on standard output that nothing depends on.
///
/// # Errors
///
/// A [`Failure`] when it cannot be written. A reader that has seen enough, such as `head`, is no
/// trouble.
pub(crate) fn show(text: &str) -> Result<(), Failure> {
    match Standard::Output.write_all(text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let code = exit::of_system(&error, exit::NOT_WRITTEN);
            Err(Failure::new(code, format!("cannot write to standard output: {error}")))
        }
    }
}

/// Starts to write; the result comes through the channel, and the waker is woken.
pub(crate) fn start(
    write: impl FnOnce() -> io::Result<()> + Send + 'static,
    waker: Option<Waker>,
) -> Receiver<io::Result<()>> {
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name("tenure-output".into());
    // Without a thread the channel is closed.
    _ = thread.spawn(move || {
        // The receiver may be gone.
        _ = sender.send(write());
        if let Some(waker) = waker {
            waker.wake();
        }
    });
    receiver
}

/// The system has no thread left.
pub(crate) fn no_thread() -> io::Error {
    io::Error::from_raw_os_error(libc::EAGAIN)
}
