//! The way of commands to the engine.

use std::sync::Arc;

use tokio::sync::mpsc::{self, error::TryRecvError};

use super::Command;
use crate::quiet::Work;

/// Where handles put commands. The engine stops when the last one is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Inbox {
    commands: mpsc::UnboundedSender<Command>,
    work: Option<Arc<Work>>,
}

/// One that does not keep the engine running.
#[derive(Debug)]
pub(super) struct WeakInbox {
    commands: mpsc::WeakUnboundedSender<Command>,
    work: Option<Arc<Work>>,
}

/// Where the engine takes them out.
#[derive(Debug)]
pub(super) struct Commands {
    commands: mpsc::UnboundedReceiver<Command>,
    work: Option<Arc<Work>>,
}

/// An inbox and its other end, of an engine whose work is counted or not.
pub(super) fn channel(work: Option<Arc<Work>>) -> (Inbox, Commands) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let inbox = Inbox { commands: sender, work: work.clone() };
    (inbox, Commands { commands: receiver, work })
}

impl Inbox {
    /// Sends a command; says whether the engine still takes any. Where its work is counted, it has
    /// done what it can do now when this returns.
    pub(crate) fn send(&self, command: Command) -> bool {
        let Some(work) = &self.work else { return self.commands.send(command).is_ok() };
        let moments = work.expect();
        let is_sent = self.commands.send(command).is_ok();
        if is_sent {
            work.until_quiet(moments);
        } else {
            work.arrived();
        }
        is_sent
    }

    pub(super) fn downgrade(&self) -> WeakInbox {
        WeakInbox { commands: self.commands.downgrade(), work: self.work.clone() }
    }
}

impl WeakInbox {
    pub(super) fn upgrade(&self) -> Option<Inbox> {
        Some(Inbox { commands: self.commands.upgrade()?, work: self.work.clone() })
    }
}

impl Commands {
    pub(super) async fn recv(&mut self) -> Option<Command> {
        let command = self.commands.recv().await;
        self.arrived(command.is_some());
        command
    }

    pub(super) fn try_recv(&mut self) -> Result<Command, TryRecvError> {
        let command = self.commands.try_recv();
        self.arrived(command.is_ok());
        command
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    fn arrived(&self, is_one: bool) {
        if is_one && let Some(work) = &self.work {
            work.arrived();
        }
    }
}
