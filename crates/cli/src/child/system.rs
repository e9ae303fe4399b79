//! What the system offers and no safe interface does: the whole of the unsafe code of the command.
//!
//! Four things: to know which signals are ignored, to do something in the child between `fork` and
//! `exec`, to be stopped as if no handler for SIGTSTP were there, and to write to a descriptor that
//! is known by its number.
#![expect(unsafe_code, reason = "signals, the moment before exec, and inherited descriptors")]

use std::{
    fs::File,
    io, mem,
    os::{
        fd::{AsRawFd as _, BorrowedFd},
        unix::process::CommandExt as _,
    },
    process::Command,
    ptr,
};

use rustix::{
    process::{
        Pid, Signal, getpid, getppid, kill_current_process_group, set_parent_process_death_signal,
    },
    termios::tcsetpgrp,
};

/// Whether a signal is ignored, as `nohup` and `&` in scripts have it.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: zeroed is a valid `sigaction`, the call only fills it in, and a bad signal number is
    // answered by an error, which leaves it at SIG_DFL.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
}

/// Has the child die with the thread that starts it, and take the terminal if it is given one.
///
/// The terminal is handed over here and not by the parent, which may be too late: the first thing
/// that the command does may be to read it.
pub(super) fn prepare(command: &mut Command, terminal: Option<BorrowedFd<'_>>) {
    let parent = getpid();
    let terminal = terminal.map(|terminal| terminal.as_raw_fd());
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
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
        Ok(())
    };
    // SAFETY: between `fork` and `exec` the closure only makes system calls that may be made in a
    // signal handler; it allocates nothing, takes no lock, and touches nothing of the parent's.
    unsafe { command.pre_exec(before_exec) };
}

/// Makes a group the owner of the terminal, out of the background too.
pub(super) fn take_terminal(terminal: BorrowedFd<'_>, group: Pid) -> io::Result<()> {
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

/// Stops this process and the others of its group, as Ctrl-Z does, until somebody continues it.
///
/// Returns at once when the kernel refuses, since nobody is there who could continue it.
pub(crate) fn stop_this_group(signal: i32) {
    signal_this_group(match signal {
        libc::SIGTTIN => Signal::TTIN,
        libc::SIGTTOU => Signal::TTOU,
        // SIGSTOP would stop a group that nobody will ever continue.
        _ => Signal::TSTP,
    });
}

/// Interrupts this process and the others of its group, as Ctrl-C does, unless that is ignored.
pub(crate) fn interrupt_this_group() {
    if !is_ignored(libc::SIGINT) {
        signal_this_group(Signal::INT);
    }
}

/// Sends this group a signal, which does to this process what it does without a handler.
fn signal_this_group(signal: Signal) {
    // SAFETY: zeroed is a valid `sigaction` and means SIG_DFL without flags; both live through the
    // calls; the handler that was there is put back.
    unsafe {
        let default: libc::sigaction = mem::zeroed();
        let mut before: libc::sigaction = mem::zeroed();
        libc::sigaction(signal.as_raw(), &raw const default, &raw mut before);
        // The signal is delivered before this returns.
        _ = kill_current_process_group(signal);
        libc::sigaction(signal.as_raw(), &raw const before, ptr::null_mut());
    }
}

/// A descriptor that whoever started the tool has opened, as a file of our own.
///
/// The command does not inherit it, unless it is one of the three standard ones: a reader of the
/// report would else wait for what the command leaves in the background.
///
/// # Errors
///
/// Those of the system: nothing is open at that number.
pub(crate) fn inherited(number: i32) -> io::Result<File> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the number is none that means "no descriptor". Nothing of this program has been
    // opened or closed at numbers of the user's choice before its options are read, and the
    // descriptor is used for one call: a number at which nothing is open is answered by an error.
    let given = unsafe { BorrowedFd::borrow_raw(number) };
    let own = File::from(given.try_clone_to_owned()?);
    if number > libc::STDERR_FILENO {
        rustix::io::fcntl_setfd(given, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(own)
}
