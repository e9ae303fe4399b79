//! A stopped server process.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use super::process::ServerProcess;
use crate::eventually;

/// A server process that is stopped; it runs on when this is dropped.
///
/// The server may be killed meanwhile: then there is nothing to wake.
#[derive(Debug)]
pub struct Frozen {
    process: Arc<Mutex<ServerProcess>>,
    pid: u32,
}

impl Frozen {
    pub(super) fn new(process: &Arc<Mutex<ServerProcess>>) -> Self {
        let locked = process.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = locked.pid().expect("the server runs");
        locked.signal(Signal::STOP);
        // The signal is delivered some time after it was sent, to one thread after the other.
        eventually(Duration::from_secs(10), "the server is stopped", || is_stopped(pid));
        drop(locked);
        Self { process: Arc::clone(process), pid }
    }

    /// Lets the server run on.
    pub fn thaw(self) {
        drop(self);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        // A server started again since is another process, which was never stopped by us.
        if process.pid() == Some(self.pid) {
            process.signal(Signal::CONT);
        }
    }
}

fn is_stopped(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.into_iter().all(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        // "PID (name) STATE …", where the name may hold anything.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}
