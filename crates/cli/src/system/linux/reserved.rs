//! The two signals that the C library keeps for its threads, and lets nobody ask for.
//!
//! It handles them once there are threads, so that they are no longer ignored behind `exec`.
#![expect(unsafe_code, reason = "signals past the C library")]

use std::{ops::RangeInclusive, ptr};

/// Their numbers in glibc and musl.
pub(crate) const RESERVED: RangeInclusive<i32> = 32..=33;

/// What the kernel knows of a signal's action. Its first member is the same on all architectures
/// but MIPS, where nothing is done here, and nothing but the first matters for an ignored signal.
#[repr(C)]
#[derive(Debug, Default)]
struct Action {
    handler: usize,
    rest: [u64; 8],
}

/// Whether it is ignored.
pub(crate) fn is_reserved_ignored(signal: i32) -> bool {
    let mut action = Action::default();
    // SAFETY: the kernel fills in an action, which is no longer than ours; a bad number or length
    // is answered by an error, which leaves it at the default.
    unsafe { change(signal, ptr::null(), &raw mut action) };
    action.handler == libc::SIG_IGN
}

/// Ignores it. For use between `fork` and `exec`.
pub(crate) fn ignore_reserved(signal: i32) {
    let action = Action { handler: libc::SIG_IGN, ..Action::default() };
    // SAFETY: the kernel reads an action, which is no longer than ours and runs no code.
    unsafe { change(signal, &raw const action, ptr::null_mut()) };
}

/// # Safety
///
/// Each action must be one, or null, and the new one must run no code.
unsafe fn change(signal: i32, new: *const Action, old: *mut Action) {
    if !cfg!(any(target_arch = "mips", target_arch = "mips64")) {
        // SAFETY: as above; the kernel's sets of signals have 8 bytes.
        _ = unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, 8_usize) };
    }
}
