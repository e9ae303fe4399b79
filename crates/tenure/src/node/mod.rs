//! Nodes: one server, or one store, that votes.

#[cfg(feature = "sqlite")]
mod file;
mod instance;
mod memory;
mod redis;
mod release_listener;
mod waiter;
mod watch;

pub(crate) use instance::ServerInstance;
pub(crate) use release_listener::ReleaseListener;
pub(crate) use waiter::{QueueWaiter, Residue, RetryContext, WaiterEvent};
pub(crate) use watch::{Watch, Watched};

use std::{
    fmt,
    future::{Future, ready},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use tenure_core::{Op, Reply};

#[cfg(feature = "sqlite")]
pub(crate) use file::Location;

use crate::{
    address::Address,
    clock::Timers,
    error::{NodeError, NodeErrorKind},
    quiet::Work,
};

/// A node's answer to come.
pub(crate) type PendingReply = Pin<Box<dyn Future<Output = Result<Reply, NodeError>>>>;

/// The moment when a node can be asked.
pub(crate) type Reach = Pin<Box<dyn Future<Output = ()>>>;

/// One node, on the engine's thread.
pub(crate) trait Node: fmt::Debug {
    /// What errors and logs call it: its address without user and password.
    fn name(&self) -> &Arc<str>;

    /// Asks for one atomic step.
    ///
    /// The op is queued before this returns, so ops arrive in the order of the calls. The answer
    /// is a [`NodeError`] once `limit` is over; it then says whether the op may have been applied,
    /// or may yet be. A release is sent even when its call is dropped.
    fn call(&self, op: Op, limit: Duration) -> PendingReply;

    /// Asks for an acquisition whose caller waits: as [`Node::call`], but the op gets its place in
    /// the queue where the node has one, and the waiter is notified of its turn from then on.
    ///
    /// No second one may be asked for the same waiter before the answer to the first.
    fn call_waiting(
        &self,
        op: Op,
        waiter: &Rc<QueueWaiter>,
        context: RetryContext,
        limit: Duration,
    ) -> PendingReply;

    /// Whether waiters are notified of their turn. Where they are not, they poll.
    fn notifies_waiters(&self) -> bool;

    /// Notifies the subscriber of each release of its lock, where the node can do that, until
    /// it unsubscribes.
    fn subscribe(&self, _listener: &Rc<ReleaseListener>) {}

    /// Ends what [`Node::subscribe`] began.
    fn unsubscribe(&self, _listener: &Rc<ReleaseListener>) {}

    /// What a round trip to the node takes, as far as it was measured.
    fn round_trip(&self) -> Duration {
        Duration::ZERO
    }

    /// Why the last connection could not be made, while that is so.
    fn trouble(&self) -> Option<NodeError> {
        None
    }

    /// The run of the server that the last connection has met; `None` before the first, and where
    /// a node is no server of its own.
    fn instance(&self) -> Option<Rc<ServerInstance>> {
        None
    }

    /// Whether the last attempt to connect failed, and the next one is not due yet.
    fn is_out_of_reach(&self) -> bool {
        false
    }

    /// Resolves when there is a point in asking: at once, unless the last connection could not be
    /// made, and the next one may be. While somebody waits for that, the node goes on trying, so
    /// that no caller has to ask without success.
    fn reachable(&self) -> Reach {
        Box::pin(ready(()))
    }

    /// Notifies the watch of changes that others make to its key, as soon as they are known, where
    /// the node knows of them sooner than by being asked.
    fn watch(&self, _watch: &Rc<Watch>) -> Watched {
        Watched::Never
    }

    /// Whether the program may end now: every release is with the operating system, and nothing in
    /// front of it can make the node throw it away.
    fn is_drained(&self) -> bool;

    /// Whether no command of an earlier connection can arrive any more.
    fn old_connections_are_closed(&self) -> bool;

    /// What the node's error about one of several things in an op means.
    fn refusal(&self, words: &str) -> NodeError {
        NodeError::new(self.name(), NodeErrorKind::Refused).with_source(words)
    }
}

/// Opens the node at an address, which may be the engine's only one. Nothing is sent before the
/// first call. A table in memory needs to know whether the engine's work is counted.
pub(crate) fn open(
    address: &Address,
    timers: &Rc<Timers>,
    is_sole: bool,
    work: Option<&Arc<Work>>,
) -> Rc<dyn Node> {
    match address {
        Address::Memory(name) => {
            Rc::new(memory::MemoryNode::open(address.to_string(), name.as_deref(), work))
        }
        #[cfg(feature = "sqlite")]
        Address::File(location) => {
            Rc::new(file::FileNode::open(address.to_string(), location.clone(), timers))
        }
        Address::Server(server) => redis::RedisNode::open(server, timers, is_sole),
    }
}

/// A command may sit in a dead connection's buffers, or in those of a stopped server, this long.
pub(crate) const LATEST_ARRIVAL: Duration = Duration::from_secs(60);
