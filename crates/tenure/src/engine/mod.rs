//! The engine: one thread per client, which owns every connection and every lease.
//!
//! Handles send it commands and await the replies, so a renewal never waits for a caller's
//! executor, and the same engine serves async callers on any executor and blocking ones.

mod acquire;
mod acquisition;
mod asking;
mod command;
mod exit;
mod inbox;
mod lease;
mod leases;
mod limits;
mod majority;
mod node_request;
mod nodes;
mod placement;
mod queue_poller;
mod reaper;
mod release_subscription;
mod renewal;
mod repair;
mod resume;
mod state;
mod status;
mod vote;
mod voters;
mod watch;

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc},
    thread::ThreadId,
    time::Duration,
};

use tokio::sync::oneshot;

pub(crate) use self::{
    command::{AcquireRequest, Acquired, Command, How},
    lease::{Holding, LeaseCell, Leased},
};
use self::{
    inbox::{Commands, Inbox, WeakInbox},
    state::State,
    status::{EngineStatus, OpenRelease},
};
use crate::{address::Address, error::ConfigError, quiet::Work, task};

/// A handle to an engine. Cheap to clone; the engine stops when the last one is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    inbox: Inbox,
    status: Arc<EngineStatus>,
    thread: ThreadId,
    /// Disconnected when the engine's thread ends.
    ended: Mutex<std_mpsc::Receiver<()>>,
}

impl Engine {
    /// Starts an engine for these nodes. Nothing is sent before the first command.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Engine`] when the operating system refuses the thread, or what it needs.
    pub(crate) fn start(nodes: Vec<Address>) -> Result<Self, ConfigError> {
        let failed = |error: &dyn ToString| ConfigError::Engine { reason: error.to_string() };
        let work = Work::of(&nodes);
        let (inbox, commands) = inbox::channel(work.clone());
        let (ready, started) = std_mpsc::channel();
        let (ending, ended) = std_mpsc::channel();
        let status = Arc::new(EngineStatus::begin());
        let thread_status = Arc::clone(&status);
        let thread_inbox = inbox.downgrade();
        let thread = std::thread::Builder::new()
            .name("tenure".into())
            .spawn(move || {
                let _end = End { status: &thread_status, work: work.as_deref(), _ending: ending };
                let inbox = thread_inbox;
                let setup =
                    Setup { nodes, commands, inbox, status: &thread_status, work: work.as_ref() };
                setup.run(&ready);
            })
            .map_err(|error| failed(&error))?;
        match started.recv() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed(&error)),
            Err(error) => return Err(failed(&error)),
        }
        let ended = Mutex::new(ended);
        let inner = Arc::new(Inner { inbox, status, thread: thread.thread().id(), ended });
        exit::register(&inner);
        Ok(Self(inner))
    }

    /// Sends a command. It is not taken when the engine has stopped.
    pub(crate) fn send(&self, command: Command) {
        if self.0.status.is_alive() {
            // A closed inbox drops the command, and with it the reply's sender.
            self.0.inbox.send(command);
        }
    }

    /// Sends a command and awaits its reply; `None` when the engine has stopped.
    ///
    /// tokio's channel counts each poll against the budget of the tokio task that polls it, and
    /// answers "pending" once the budget is spent. A caller that blocks inside a task never gives
    /// the budget back and would wait forever, so these polls are not counted.
    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply));
        tokio::task::unconstrained(answer).await.ok()
    }
}

/// The exit flush: releases that were queued, by dropped guards too, are written before the last
/// handle is gone. A program that returns from `main` would otherwise leave its locks behind.
impl Drop for Inner {
    fn drop(&mut self) {
        if !self.status.is_ours() {
            // In a forked child the inbox must not close: that would wake the copy of a runtime
            // that has no thread, and may wait for a lock that nobody releases.
            std::mem::forget(self.inbox.clone());
            return;
        }
        if !self.status.is_alive() || std::thread::current().id() == self.thread {
            return;
        }
        if self.inbox.send(Command::Stop) {
            let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
            // Either way nothing is left to do: it has ended, or it takes too long.
            _ = ended.recv_timeout(EXIT_FLUSH + EXIT_GRACE);
        }
    }
}

/// Marks the engine dead however its thread ends, a panic included.
struct End<'a> {
    status: &'a EngineStatus,
    work: Option<&'a Work>,
    _ending: std_mpsc::Sender<()>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.status.end();
        if let Some(work) = self.work {
            work.stop();
        }
    }
}

struct Setup<'a> {
    nodes: Vec<Address>,
    commands: Commands,
    inbox: WeakInbox,
    status: &'a Arc<EngineStatus>,
    work: Option<&'a Arc<Work>>,
}

impl Setup<'_> {
    fn run(self, ready: &std_mpsc::Sender<std::io::Result<()>>) {
        // The receiver waits for exactly one message, so sending cannot fail.
        let report = |result| _ = ready.send(result);
        let mut builder = tokio::runtime::Builder::new_current_thread();
        if let Some(work) = self.work {
            Work::adopt_thread();
            let (resumed, rested) = (Arc::clone(work), Arc::clone(work));
            builder.on_thread_unpark(move || resumed.resume());
            builder.on_thread_park(move || rested.rest());
        }
        let runtime = match builder.enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return report(Err(error)),
        };
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async {
            match State::new(&self.nodes, self.inbox, self.status, self.work) {
                Ok(state) => {
                    report(Ok(()));
                    tokio::select! {
                        biased;
                        () = task::given_up() => {}
                        () = state.run(self.commands) => {}
                    }
                }
                Err(error) => report(Err(error)),
            }
        });
        // Before the leases are dropped one after the other, so that no handle still says "held"
        // when the first of them has reported its loss.
        self.status.end();
        drop(tasks);
        // A name look-up that hangs must not hold up the end.
        runtime.shutdown_background();
    }
}

/// How long the last handle's drop waits for queued releases to be written.
pub(crate) const EXIT_FLUSH: Duration = Duration::from_millis(250);

/// The engine notices the end of the flush by itself; this is for a thread that gets no processor.
const EXIT_GRACE: Duration = Duration::from_millis(50);
