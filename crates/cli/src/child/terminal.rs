//! The terminal: who owns it, and handing it over.
//!
//! A command in a group of its own is in the terminal's background, where the first read would stop
//! it. So it becomes the owner, as a shell's job does, and the tool takes the terminal back in the
//! end: the shell that started the tool expects it there.

use std::{
    cell::Cell,
    fs::File,
    io::stdin,
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::fs::OpenOptionsExt as _,
    },
};

use rustix::{
    process::{Pid, getpgid, getpgrp, getppid, getsid},
    termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr},
};

use crate::system::{is_ignored, take_terminal};

/// The controlling terminal of the tool, and of the command.
#[derive(Debug)]
pub(crate) struct Terminal {
    tty: File,
    own_group: Pid,
    /// Standard input is this terminal: the command will want to read it.
    is_input: bool,
    /// How it is set up: echo, lines, and so on.
    modes: Option<Termios>,
    /// The command has been made the owner.
    handed_over: Cell<bool>,
}

impl Terminal {
    /// The terminal, if there is one; cron jobs and services have none.
    pub(crate) fn of_this_process() -> Option<Self> {
        let mut open = File::options();
        open.read(true).write(true).custom_flags(libc::O_NOCTTY);
        let tty = open.open("/dev/tty").ok()?;
        // Says so only of the controlling terminal.
        let is_input = tcgetpgrp(stdin()).is_ok();
        let modes = tcgetattr(&tty).ok();
        Some(Self { tty, own_group: getpgrp(), is_input, modes, handed_over: Cell::new(false) })
    }

    pub(super) fn tty(&self) -> BorrowedFd<'_> {
        self.tty.as_fd()
    }

    /// Whether the tool's own group owns it.
    pub(crate) fn is_ours(&self) -> bool {
        self.owner() == Some(self.own_group)
    }

    /// Whether the command becomes the owner as it starts. Notes that it did.
    ///
    /// Behind a pipe it does not: another command of the pipeline may be the one that reads. One
    /// that reads the terminal nevertheless is stopped, and gets it then.
    pub(super) fn is_to_be_handed_over(&self) -> bool {
        let handed_over = self.is_input && self.is_ours();
        self.handed_over.set(handed_over);
        handed_over
    }

    /// Whether Ctrl-Z stops the tool, too: not when it was started with that signal ignored.
    pub(crate) fn has_job_control(&self) -> bool {
        !is_ignored(libc::SIGTSTP)
    }

    /// Makes a group the owner if the tool's own group is.
    pub(crate) fn hand_over(&self, group: Pid) -> bool {
        let handed_over = self.is_ours() && take_terminal(self.tty(), group).is_ok();
        self.handed_over.set(self.handed_over.get() || handed_over);
        handed_over
    }

    /// Makes the tool's own group the owner again, if it was and nobody else has become it since.
    pub(crate) fn take_back(&self) {
        if !self.handed_over.replace(false) {
            return;
        }
        let owner = self.owner();
        // The tool's parent may have taken it: a shell does when its job is stopped.
        let of = |process| getpgid(process).ok();
        let starters = [of(getppid()), getsid(None).ok().and_then(|leader| of(Some(leader)))];
        if owner.is_none_or(|owner| !starters.contains(&Some(owner))) {
            // A terminal that is gone is nobody's.
            _ = take_terminal(self.tty(), self.own_group);
        }
    }

    /// Takes the terminal back from a command that has ended; says whether it had it.
    ///
    /// One that a signal ended may have left it without echo: a shell sets that right for its own
    /// jobs, but the job that it sees end is the tool.
    pub(crate) fn take_back_from_ended(&self, by_signal: bool) -> bool {
        let had_it = self.handed_over.get();
        self.take_back();
        if let Some(modes) = self.modes.as_ref().filter(|_| by_signal && had_it && self.is_ours()) {
            // A terminal that is gone has no modes.
            _ = tcsetattr(&self.tty, OptionalActions::Drain, modes);
        }
        had_it
    }

    fn owner(&self) -> Option<Pid> {
        tcgetpgrp(&self.tty).ok()
    }
}

/// However the tool leaves, a panic included, the terminal is its starter's again.
impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
