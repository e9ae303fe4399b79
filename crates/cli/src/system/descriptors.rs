//! Descriptors that the tool inherited.
#![expect(unsafe_code, reason = "descriptors that are known by their number")]

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, BorrowedFd, FromRawFd as _},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl},
};

use super::found::was_closed;

/// Standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standard {
    Output,
    Error,
}

impl Standard {
    /// Whether a line can be written now without waiting, if nobody else writes.
    pub(crate) fn is_writable(self) -> bool {
        let (output, error) = (io::stdout(), io::stderr());
        let to = match self {
            Self::Output => output.as_fd(),
            Self::Error => error.as_fd(),
        };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&to, PollFlags::OUT)], Some(&now)) == Ok(1)
    }

    /// Writes all of this, and blocks while nobody reads.
    ///
    /// # Errors
    ///
    /// Those of the system; EBADF where it was closed when the tool was started, in whose place
    /// Rust's runtime has opened `/dev/null`.
    pub(crate) fn write_all(self, mut bytes: &[u8]) -> io::Result<()> {
        let (output, error) = (io::stdout(), io::stderr());
        let (number, to) = match self {
            Self::Output => (libc::STDOUT_FILENO, output.as_fd()),
            Self::Error => (libc::STDERR_FILENO, error.as_fd()),
        };
        if was_closed(number) {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        while !bytes.is_empty() {
            match rustix::io::write(to, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(rustix::io::Errno::INTR) => {}
                // Another process that shares this descriptor has made it so.
                Err(rustix::io::Errno::AGAIN) => wait_until_writable(to)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn wait_until_writable(to: BorrowedFd<'_>) -> io::Result<()> {
    match poll(&mut [PollFd::new(&to, PollFlags::OUT)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A descriptor that the tool inherited, as a file of our own.
///
/// The command does not inherit it, unless it is one of the three standard ones: a reader of the
/// report would else wait for what the command leaves in the background.
///
/// # Errors
///
/// Those of the system: nothing is open at that number. And one when it is not open for writing.
pub(crate) fn inherited(number: i32) -> io::Result<File> {
    if was_closed(number) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: makes a descriptor of our own, or fails, whatever the number is.
    let own = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) };
    if own == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was made in the line above, and nothing else knows it.
    let own = unsafe { File::from_raw_fd(own) };
    let mode = fcntl_getfl(&own)? & OFlags::ACCMODE;
    if mode != OFlags::WRONLY && mode != OFlags::RDWR {
        let what = "it is not open for writing";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    if number > libc::STDERR_FILENO {
        // SAFETY: sets a flag of a descriptor that is open.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(own)
}
