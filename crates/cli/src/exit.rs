//! The exit codes of the tool's own. Everything else is the command's.

use std::io;

/// The answer is no: the lock is free, or the token does not hold it.
pub(crate) const NO: u8 = 1;

/// What was asked for cannot be done as it stands: no server, a bad duration, a bad key.
pub(crate) const USAGE: u8 = 64;

/// What stands at the key can be no lock, however long one waits.
pub(crate) const NOT_A_LOCK: u8 = 65;

/// Whether the lock is free is unknown: the server is unreachable, or refused.
pub(crate) const UNKNOWN: u8 = 69;

/// The lease was lost while the command ran, whatever the command itself said.
pub(crate) const LOST: u8 = 70;

/// The system lacks what the tool needs: descriptors, threads, memory.
pub(crate) const NO_RESOURCES: u8 = 71;

/// The result cannot be written where it was wanted.
pub(crate) const NOT_WRITTEN: u8 = 74;

/// Another holds the lock.
pub(crate) const BUSY: u8 = 75;

/// The command is there and cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;

/// The command is not there.
pub(crate) const NOT_FOUND: u8 = 127;

/// The code for an end by a signal, of the command or of the tool's own wait.
pub(crate) fn of_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128))
}

/// The code for an error of the system: one of its own when the system lacks what the tool needs.
pub(crate) fn of_system(error: &io::Error, otherwise: u8) -> u8 {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::ENOMEM | libc::ENOBUFS) => {
            NO_RESOURCES
        }
        _ => otherwise,
    }
}

/// The table that the help, the manual and `docs/exit-codes.md` share.
const TABLE: [(u8, &str); 10] = [
    (NO, "status: the lock is free; extend, release: nobody holds it any more"),
    (USAGE, "bad usage: nothing was acquired and nothing changed"),
    (NOT_A_LOCK, "run, acquire: the value at KEY cannot be a lock, such as a hash"),
    (
        UNKNOWN,
        "the state is unknown: the server, or too many of several, is unreachable or refuses",
    ),
    (LOST, "run: the lease was lost, or --max-hold was over, whatever CMD returned"),
    (NO_RESOURCES, "the system has no descriptor, thread or memory left"),
    (NOT_WRITTEN, "standard output or the report cannot be written; acquire: the lock is released"),
    (BUSY, "another holds the lock (run, acquire: or as set by -E)"),
    (NOT_EXECUTABLE, "run: CMD cannot be executed"),
    (NOT_FOUND, "run: CMD is not found"),
];

/// The codes as `--help` shows them.
pub(crate) fn table() -> String {
    let mut text = String::from(
        "Exit codes:\n  \
         run returns the code of CMD, or 128 + N if signal N ended CMD or the wait.\n  \
         Otherwise 0 is success (status: the lock is held), and:\n",
    );
    for (code, meaning) in TABLE {
        text.push_str(&format!("  {code:<3} {meaning}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_become_exit_codes_as_in_shells() {
        assert_eq!((of_signal(9), of_signal(11), of_signal(15)), (137, 139, 143));
        assert_eq!((of_signal(-1), of_signal(200)), (u8::MAX, u8::MAX));
    }
}
