//! The moment between `fork` and `exec`.
#![expect(unsafe_code, reason = "the moment before exec, and the mask while a terminal is taken")]

use std::{
    io, mem,
    os::{
        fd::{AsRawFd as _, BorrowedFd},
        unix::process::CommandExt as _,
    },
    process::Command,
    ptr,
};

use rustix::{
    process::{Pid, getpid, getppid},
    termios::tcsetpgrp,
};

use super::{found, platform};

/// Makes the child die with the thread that starts it, take the terminal if it is given one, and
/// find signals and standard descriptors as the tool's starter has set them up.
///
/// The terminal is handed over here and not by the parent, which may be too late: the first thing
/// that the command does may be to read it.
pub(crate) fn prepare(command: &mut Command, terminal: Option<BorrowedFd<'_>>) {
    let parent = getpid();
    let terminal = terminal.map(|terminal| terminal.as_raw_fd());
    let before_exec = move || {
        platform::die_with_parent()?;
        // The parent may have died before the line above: then nobody will send that signal.
        if getppid() != Some(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if let Some(terminal) = terminal {
            // SAFETY: the caller's descriptor is open in the parent while it spawns, hence here.
            let terminal = unsafe { BorrowedFd::borrow_raw(terminal) };
            // A terminal that went away meanwhile is the command's own trouble.
            _ = take_terminal(terminal, getpid());
        }
        found::restore()
    };
    // SAFETY: between `fork` and `exec` the closure only makes system calls that may be made in a
    // signal handler; it allocates nothing, takes no lock, and touches nothing of the parent's.
    unsafe { command.pre_exec(before_exec) };
}

/// Makes a group the owner of the terminal, out of the background too.
pub(crate) fn take_terminal(terminal: BorrowedFd<'_>, group: Pid) -> io::Result<()> {
    // SAFETY: zeroed is a valid `sigset_t`, both sets live through the calls, and the mask of this
    // thread alone is changed and restored.
    unsafe {
        let mut output: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut output);
        libc::sigaddset(&raw mut output, libc::SIGTTOU);
        // Unless it is blocked, a process of the background that does this is stopped.
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const output, &raw mut before);
        let taken = tcsetpgrp(terminal, group);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        Ok(taken?)
    }
}
