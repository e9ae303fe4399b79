//! Signals that the tool sends itself, or does without.
#![expect(unsafe_code, reason = "signal dispositions and masks")]

use std::{mem, ptr};

use rustix::process::{Signal, kill_current_process_group};

use super::found::is_ignored;

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

/// Makes sure that these signals reach the tool, whatever its starter has blocked: without SIGCHLD
/// it would never learn of the command's end. The command gets the mask as it was.
pub(crate) fn receive(signals: &[i32]) {
    change_mask(libc::SIG_UNBLOCK, signals);
}

/// Lets this thread write to a terminal that stops the writers of its background.
pub(crate) fn block_terminal_stops() {
    change_mask(libc::SIG_BLOCK, &[libc::SIGTTOU]);
}

fn change_mask(how: i32, signals: &[i32]) {
    // SAFETY: `sigemptyset` makes a valid set of the zeroed one, and a number that is no signal's
    // is answered by an error and not added.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::pthread_sigmask(how, &raw const set, ptr::null_mut());
    }
}

/// Turns a limit of file sizes into an error of the write, in place of the end of the tool, which
/// would leave its lock behind.
pub(crate) fn outlive_file_limits() {
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
