//! Signals and standard descriptors as the tool inherited them.
//!
//! Rust's runtime ignores SIGPIPE and opens `/dev/null` in place of closed standard descriptors
//! before `main`, so this looks before the runtime does, and the command gets it all as it was.
#![expect(unsafe_code, reason = "code before main, signal masks, and descriptors by their number")]

use std::{
    io, mem, ptr,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

use super::platform;

/// Signals that were ignored, signal N at bit N - 1.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// Signals that were blocked, signal N at bit N - 1.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// Standard descriptors that were closed, descriptor N at bit N.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Whether a signal was ignored when the tool was started, as under `nohup` or after `&` in
/// scripts.
pub(crate) fn is_ignored(signal: i32) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// Whether a standard descriptor was closed when the tool was started.
pub(super) fn was_closed(descriptor: i32) -> bool {
    CLOSED.load(Ordering::Relaxed) & closed_bit(descriptor) != 0
}

/// Gives the calling process back what the tool found. For use between `fork` and `exec`: only
/// makes system calls.
pub(super) fn restore() -> io::Result<()> {
    for signal in CHANGED {
        let action = if is_ignored(signal) { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: neither action runs any code.
        unsafe { libc::signal(signal, action) };
    }
    for signal in platform::RESERVED.filter(|signal| is_ignored(*signal)) {
        platform::ignore_reserved(signal);
    }
    let blocked = BLOCKED.load(Ordering::Relaxed);
    // SAFETY: `sigemptyset` makes a valid set of the zeroed one, and the numbers are signals'.
    let changed = unsafe {
        let mut mask: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut mask);
        for signal in (1..=64).filter(|signal| blocked & bit(*signal) != 0) {
            libc::sigaddset(&raw mut mask, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut())
    };
    if changed != 0 {
        return Err(io::Error::from_raw_os_error(changed));
    }
    for descriptor in (0..=libc::STDERR_FILENO).filter(|descriptor| was_closed(*descriptor)) {
        // SAFETY: the runtime opened it, for this process alone, which is about to be replaced.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

/// The signals whose disposition Rust's runtime or the tool changes in a way that `exec` keeps, or
/// that it would set back to the default.
const CHANGED: [i32; 3] = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ];

/// Runs before the runtime's own start, like a constructor of C++.
#[used]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let mut ignored = 0;
    for signal in platform::RESERVED.filter(|signal| platform::is_reserved_ignored(*signal)) {
        ignored |= bit(signal);
    }
    for signal in 1..32 {
        // SAFETY: zeroed is a valid `sigaction`, the call only fills it in, and a number that is
        // no signal's is answered by an error, which leaves it at SIG_DFL.
        let action = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action);
            action.sa_sigaction
        };
        if action == libc::SIG_IGN {
            ignored |= bit(signal);
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
    // SAFETY: the set is filled in by the call, and stays empty if that fails.
    let mask = unsafe {
        let mut mask: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut mask);
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut mask);
        mask
    };
    // SAFETY: the set is valid, and a number that is no signal's is answered by -1.
    let is_blocked = |signal: &i32| unsafe { libc::sigismember(&raw const mask, *signal) == 1 };
    let blocked = (1..=64).filter(is_blocked).fold(0, |bits, signal| bits | bit(signal));
    BLOCKED.store(blocked, Ordering::Relaxed);
    // SAFETY: asks for the flags of a descriptor, and fails when there is none.
    let is_closed = |descriptor: &i32| unsafe { libc::fcntl(*descriptor, libc::F_GETFD) == -1 };
    let closed = (0..=libc::STDERR_FILENO).filter(is_closed);
    CLOSED.store(closed.fold(0, |bits, number| bits | closed_bit(number)), Ordering::Relaxed);
}

/// The bit of a signal, or of none.
fn bit(signal: i32) -> u64 {
    u32::try_from(signal - 1).ok().and_then(|signal| 1_u64.checked_shl(signal)).unwrap_or(0)
}

fn closed_bit(descriptor: i32) -> u8 {
    u32::try_from(descriptor).ok().and_then(|number| 1_u8.checked_shl(number)).unwrap_or(0)
}
