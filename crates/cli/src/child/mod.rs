//! The command that is run, in a process group of its own, and the processes below it.

mod terminal;

use std::{
    cell::Cell,
    ffi::{OsStr, OsString},
    io,
    os::unix::process::CommandExt as _,
    process::Command,
};

use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpgid, kill_process,
        kill_process_group, test_kill_process, test_kill_process_group, wait, waitid, waitpid,
    },
};

pub(crate) use self::terminal::Terminal;
use crate::{
    exit,
    failure::{self, Failure},
    messages::say,
    system::{self, ProcessInfo, adopt_orphans, descendants},
};

/// The running command and everything that it starts.
///
/// Only [`Child::try_wait`] reaps its process, so until it returns [`ChildState::Ended`] the number
/// belongs to no other process.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    /// How it ended, once it is reaped.
    end: Cell<Option<CommandEnd>>,
    /// Children that the tool had before: the program that it replaced has started them.
    strangers: Vec<ProcessInfo>,
    /// It was said that a process cannot be signalled.
    refusal_was_said: Cell<bool>,
}

/// The state of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildState {
    /// Nothing new.
    Running,
    /// A signal stopped it.
    Stopped(i32),
    /// It has ended, and is reaped.
    Ended(CommandEnd),
}

/// The processes below the command that are left after a kill.
#[derive(Debug)]
pub(crate) enum Survivors {
    /// Those that cannot be signalled, if any.
    Refusing(Vec<ProcessInfo>),
    /// Some may be dying.
    Dying(Vec<ProcessInfo>),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    /// By itself, with this status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

impl CommandEnd {
    /// The code as a shell reports it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Status(status) => status,
            Self::Signal(signal) => exit::of_signal(signal),
        }
    }

    fn of(status: WaitStatus) -> Option<Self> {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(Self::Status(u8::try_from(code).unwrap_or(u8::MAX))),
            (None, signal) => signal.map(Self::Signal),
        }
    }
}

impl Child {
    /// Starts the command, without a shell, with the tool's own input and outputs, as the owner of
    /// the terminal if the tool is that.
    ///
    /// The kernel kills it when the calling thread ends, so the same thread must wait for it.
    ///
    /// # Errors
    ///
    /// A [`Failure`] that distinguishes a missing file, one that cannot be executed, and a
    /// system without resources for it.
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
        let strangers = if has_children() { descendants(&[]) } else { Vec::new() };
        adopt_orphans();
        let child = command.spawn().map_err(|error| {
            let code = match error.kind() {
                io::ErrorKind::NotFound => exit::NOT_FOUND,
                _ => exit::of_system(&error, exit::NOT_EXECUTABLE),
            };
            let program = failure::quoted(program.as_encoded_bytes());
            Failure::new(code, format!("cannot run {program}: {error}"))
                .hint("the lock is released again")
        })?;
        let pid = Pid::from_child(&child);
        Ok(Self { pid, end: Cell::new(None), strangers, refusal_was_said: Cell::new(false) })
    }

    /// Its process group.
    pub(crate) fn group(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to its whole group, and to the command itself if it has left that.
    pub(crate) fn signal(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else { return };
        if self.end.get().is_some() && test_kill_process_group(self.pid).is_err() {
            return;
        }
        let mut sent = kill_process_group(self.pid, signal);
        // After the group, so that a command which leaves it right now is not missed.
        if self.end.get().is_none() && getpgid(Some(self.pid)) != Ok(self.pid) {
            sent = kill_process(self.pid, signal);
        }
        if sent == Err(Errno::PERM) {
            self.say_refusal(self.pid);
        }
    }

    /// Sends a signal to the command and to all processes below it, to none of them twice. Returns
    /// those below it that cannot be signalled.
    pub(crate) fn signal_all(&self, number: i32) -> Vec<ProcessInfo> {
        self.signal(number);
        let Some(signal) = Signal::from_named_raw(number) else { return Vec::new() };
        let group = self.pid.as_raw_nonzero().get();
        let mut others = self.others();
        others.retain(|process| {
            let sent = match process.group == group {
                true => test_kill_process(process.pid).map_err(io::Error::from),
                false => process.signal(signal),
            };
            sent.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
        });
        if let Some(process) = others.first() {
            self.say_refusal(process.pid);
        }
        others
    }

    /// Kills the command and all processes below it, and those that they start before they die.
    pub(crate) fn kill_all(&self) -> Survivors {
        // A process that starts another and ends may be gone from each list before it is killed,
        // but not from list after list.
        for _ in 0..MAX_ROUNDS {
            let refusing = self.signal_all(libc::SIGKILL);
            self.reap();
            if self.others().len() <= refusing.len() {
                return Survivors::Refusing(refusing);
            }
        }
        Survivors::Dying(self.others())
    }

    /// Says once that a process of other credentials cannot be ended.
    fn say_refusal(&self, pid: Pid) {
        if self.refusal_was_said.replace(true) {
            return;
        }
        let name = ProcessInfo::find(pid).map(|process| format!(" ({})", process.name));
        say(&format!(
            "process {pid}{} runs with other credentials and cannot be signalled: it may work on \
             without the lock; run `sudo tenure run`, not `tenure run sudo`",
            name.unwrap_or_default()
        ));
    }

    /// The processes below the tool that the command has started, without the command itself.
    pub(crate) fn others(&self) -> Vec<ProcessInfo> {
        let mut all = descendants(&self.strangers);
        all.retain(|process| process.pid != self.pid || self.end.get().is_some());
        all
    }

    /// Whether anything that it has started is left, after its own process was reaped.
    pub(crate) fn has_left_others(&self) -> bool {
        // Where processes cannot be listed the group is all there is to ask.
        !self.others().is_empty() || test_kill_process_group(self.pid).is_ok()
    }

    /// Returns the state of the command without blocking, and reaps the orphans that the tool has
    /// adopted.
    pub(crate) fn try_wait(&self) -> ChildState {
        if self.end.get().is_none() {
            let found = waitpid(Some(self.pid), WaitOptions::NOHANG | WaitOptions::UNTRACED);
            // That a child of ours cannot be waited for does not happen: nobody else reaps it.
            if let Ok(Some((_, status))) = found {
                if let Some(signal) = status.stopping_signal() {
                    return ChildState::Stopped(signal);
                }
                self.end.set(CommandEnd::of(status));
            }
        }
        self.reap();
        self.end.get().map_or(ChildState::Running, ChildState::Ended)
    }

    /// Reaps whatever has ended, the command included.
    fn reap(&self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid && self.end.get().is_none() => {
                    self.end.set(CommandEnd::of(status));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
}

/// About as long as a program takes to start another.
const MAX_ROUNDS: usize = 50;

/// Reaps the processes that the tool has adopted, where it waits for none of its own.
pub(crate) fn reap_orphans() {
    while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(Errno::INTR)) {}
}

/// Whether the tool has children, ended ones included.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}
