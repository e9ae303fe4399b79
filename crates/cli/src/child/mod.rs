//! The command that is run, in a process group of its own.

mod system;
mod terminal;

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    process::Command,
};

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpid,
};

pub(crate) use self::{
    system::{inherited, interrupt_this_group, is_ignored, stop_this_group},
    terminal::Terminal,
};
use crate::{
    exit,
    failure::{self, Failure},
};

/// The running command and everything it starts that stays in its group.
///
/// Its own process is not reaped before [`Child::look`] says how it ended, so until then its number
/// is no other process's.
#[derive(Debug)]
pub(crate) struct Child(Pid);

/// What a look at the command shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing new.
    Running,
    /// A signal stopped it.
    Stopped(i32),
    /// It has ended, and is reaped.
    Ended(End),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, with this status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

impl End {
    /// The code as a shell tells it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Status(status) => status,
            Self::Signal(signal) => exit::of_signal(signal),
        }
    }
}

impl Child {
    /// Starts the command, without a shell, with the tool's own input and outputs, as the owner of
    /// the terminal if the tool is that.
    ///
    /// The kernel kills it when the calling thread ends, so that must be the one that waits for it.
    ///
    /// # Errors
    ///
    /// A [`Failure`] that tells what is not there from what cannot be executed.
    pub(crate) fn start(
        program: &OsStr,
        args: &[OsString],
        variables: &[(&str, &OsStr)],
        terminal: Option<&Terminal>,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.args(args).envs(variables.iter().copied()).process_group(0);
        let handed_over = terminal.filter(|terminal| terminal.is_to_be_handed_over());
        system::prepare(&mut command, handed_over.map(Terminal::tty));
        let child = command.spawn().map_err(|error| {
            let code = match error.kind() {
                io::ErrorKind::NotFound => exit::NOT_FOUND,
                _ => exit::NOT_EXECUTABLE,
            };
            let program = failure::quoted(program.as_encoded_bytes());
            Failure::new(code, format!("cannot run {program}: {error}"))
                .hint("the lock is released again")
        })?;
        Ok(Self(Pid::from_child(&child)))
    }

    /// Its process group.
    pub(crate) fn group(&self) -> Pid {
        self.0
    }

    /// Sends its whole group a signal.
    pub(crate) fn signal(&self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            // It cannot be gone, and programs that became another user's are not ours to signal.
            _ = kill_process_group(self.0, signal);
        }
    }

    /// Whether anything of its group is left, after its own process was reaped.
    pub(crate) fn has_left_others(&self) -> bool {
        test_kill_process_group(self.0).is_ok()
    }

    /// Looks what has become of it, without waiting.
    pub(crate) fn look(&self) -> State {
        let found = waitpid(Some(self.0), WaitOptions::NOHANG | WaitOptions::UNTRACED);
        // That a child of ours cannot be waited for does not happen: nobody else reaps it.
        let Ok(Some((_, status))) = found else { return State::Running };
        if let Some(signal) = status.stopping_signal() {
            return State::Stopped(signal);
        }
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => State::Ended(End::Status(u8::try_from(code).unwrap_or(u8::MAX))),
            (None, Some(signal)) => State::Ended(End::Signal(signal)),
            (None, None) => State::Running,
        }
    }
}
