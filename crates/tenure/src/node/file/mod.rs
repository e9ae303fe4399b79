//! The embedded store: a node in a file, for the processes of one host.

mod boot;
mod listener;
mod opened;
mod place;
mod sockets;
mod stopped;
mod store;
mod table;
mod turn;
mod worker;

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc as std_mpsc,
    },
    time::Duration,
};

use tenure_core::{Channel, Op};
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::place::Location;
use self::{
    stopped::Obstacle,
    store::{Store, patience},
    worker::{StoreRequest, Worker},
};
use super::{Node, PendingReply, QueueWaiter, RetryContext, waiter::Waiters};
use crate::{
    clock::{self, Timers},
    error::{NodeError, NodeErrorKind},
    random, task,
};

/// A store in a file. SQLite blocks, so it runs on a thread of its own, one op after the other.
#[derive(Debug)]
pub(super) struct FileNode {
    name: Arc<str>,
    timers: Rc<Timers>,
    requests: std_mpsc::Sender<StoreRequest>,
    /// Ops that the thread has not finished.
    pending: Arc<AtomicUsize>,
    channel: Channel,
    waiters: Rc<Waiters>,
    obstacle: Arc<Obstacle>,
    has_thread: bool,
}

impl FileNode {
    /// Nothing is opened before the first op.
    pub(super) fn open(name: String, location: Location, timers: &Rc<Timers>) -> Self {
        let (requests, inbox) = std_mpsc::channel();
        let (listener, sockets) = mpsc::unbounded_channel();
        let mut node = Self {
            name: name.into(),
            timers: Rc::clone(timers),
            requests,
            pending: Arc::default(),
            channel: Channel::new(random::jitter()),
            waiters: Rc::default(),
            obstacle: Arc::default(),
            has_thread: false,
        };
        let obstacle = Arc::clone(&node.obstacle);
        let store = Store::new(Arc::clone(&node.name), location, obstacle, listener);
        let worker = Worker { store, requests: inbox, pending: Arc::clone(&node.pending) };
        let thread = std::thread::Builder::new().name("tenure-store".into());
        // Without one every op is answered by a closed channel.
        node.has_thread = thread.spawn(|| worker.run()).is_ok();
        let waiters = Rc::clone(&node.waiters);
        task::spawn(listener::listen(waiters, node.channel.clone(), sockets));
        node
    }

    fn ask(&self, op: Op, limit: Duration) -> PendingReply {
        let (answer, answered) = oneshot::channel();
        let started = Arc::new(AtomicBool::new(false));
        let deadline = clock::now() + limit;
        let limit = self.timers.sleep_until(deadline + patience(&op));
        self.pending.fetch_add(1, Ordering::AcqRel);
        let request = StoreRequest { op, deadline, started: Arc::clone(&started), answer };
        if self.requests.send(request).is_err() {
            self.pending.fetch_sub(1, Ordering::AcqRel);
        }
        let error = |kind| NodeError::of_store(&self.name, kind);
        let late = error(NodeErrorKind::TimedOut);
        let gone = match self.has_thread {
            true => error(NodeErrorKind::Disconnected).maybe_applied(),
            false => error(NodeErrorKind::NoResources),
        };
        let obstacle = Arc::clone(&self.obstacle);
        Box::pin(async move {
            tokio::select! {
                biased;
                result = answered => result.unwrap_or(Err(gone)),
                () = limit => {
                    let late = match obstacle.get() {
                        Some(stopped) => late.with_source(stopped),
                        None => late,
                    };
                    let started = started.load(Ordering::Acquire);
                    Err(if started { late.maybe_applied() } else { late })
                }
            }
        })
    }
}

impl Node for FileNode {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn call(&self, op: Op, limit: Duration) -> PendingReply {
        self.ask(op, limit)
    }

    fn call_waiting(
        &self,
        mut op: Op,
        waiter: &Rc<QueueWaiter>,
        context: RetryContext,
        limit: Duration,
    ) -> PendingReply {
        self.waiters.give_place(&mut op, waiter, &self.channel, &context);
        self.ask(op, limit)
    }

    fn notifies_waiters(&self) -> bool {
        true
    }

    fn is_drained(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    fn old_connections_are_closed(&self) -> bool {
        true
    }
}
