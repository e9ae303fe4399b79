//! The process behind a server, over its starts and ends.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};

use crate::spawner::{OUTPUT, Program, spawn};

/// A program that can be started, and the child while it runs.
#[derive(Debug)]
pub(super) struct ServerProcess {
    program: Program,
    child: Option<Child>,
}

impl ServerProcess {
    pub(super) fn new(program: Program) -> Self {
        Self { program, child: None }
    }

    pub(super) fn start(&mut self) -> io::Result<()> {
        assert!(self.child.is_none(), "the server already runs");
        self.child = Some(spawn(self.program.clone())?);
        Ok(())
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // An error means that it has ended by itself; the wait shows it in both cases.
            drop(child.kill());
            child.wait().expect("wait for the server to end");
        }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends a signal; nothing happens when the process does not run.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            // Not yet waited for, so the number cannot belong to another process.
            kill_process(Pid::from_child(child), signal).ok();
        }
    }

    /// How it ended; `None` while it runs.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What a server in this directory has said: first its output, then its log.
pub(super) fn log(dir: &Path) -> String {
    let read = |name: &str| fs::read(dir.join(name)).unwrap_or_default();
    String::from_utf8_lossy(&[read(OUTPUT), read(LOG)].concat()).into_owned()
}

/// The command line of a server, for [`ServerProcess::new`].
pub(super) fn program(
    binary: PathBuf,
    args: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    dir: &Path,
) -> Program {
    Program { binary, args, variables, dir: dir.to_owned() }
}

/// File in the server's directory.
pub(super) const LOG: &str = "log";
