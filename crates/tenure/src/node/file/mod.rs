//! The embedded store: a node in a file, for the processes of one host.

mod place;
mod process;
mod stopped;
mod store;
mod table;
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
    store::Store,
    worker::{Request, Worker},
};
use super::{Brought, Call, Node, Waiter, waiter::Waiters};
use crate::{
    clock::{self, Timers},
    error::{NodeError, NodeErrorKind},
    task,
};

/// A store in a file. SQLite blocks, so it runs on a thread of its own, one op after the other.
#[derive(Debug)]
pub(super) struct FileNode {
    name: Arc<str>,
    timers: Rc<Timers>,
    requests: std_mpsc::Sender<Request>,
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
        let (wakes, woken) = mpsc::unbounded_channel();
        let mut node = Self {
            name: name.into(),
            timers: Rc::clone(timers),
            requests,
            pending: Arc::default(),
            channel: process::own_channel(),
            waiters: Rc::default(),
            obstacle: Arc::default(),
            has_thread: false,
        };
        let store = Store::new(Arc::clone(&node.name), location, Arc::clone(&node.obstacle));
        let worker = Worker::new(store, inbox, Arc::clone(&node.pending), wakes);
        let thread = std::thread::Builder::new().name("tenure-store".into());
        // Without one every op is answered by a closed channel.
        node.has_thread = thread.spawn(|| worker.run()).is_ok();
        task::spawn(Rc::clone(&node.waiters).deliver_all(woken));
        node
    }

    fn ask(&self, op: Op, limit: Duration) -> Call {
        let (answer, answered) = oneshot::channel();
        let started = Arc::new(AtomicBool::new(false));
        let deadline = clock::now() + limit;
        self.pending.fetch_add(1, Ordering::AcqRel);
        let request = Request { op, deadline, started: Arc::clone(&started), answer };
        if self.requests.send(request).is_err() {
            self.pending.fetch_sub(1, Ordering::AcqRel);
        }
        let late = NodeError::new(&self.name, NodeErrorKind::TimedOut);
        let gone = match self.has_thread {
            true => NodeError::new(&self.name, NodeErrorKind::Disconnected).maybe_applied(),
            false => NodeError::new(&self.name, NodeErrorKind::NoResources),
        };
        let limit = self.timers.sleep_until(deadline);
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

    fn call(&self, op: Op, limit: Duration) -> Call {
        self.ask(op, limit)
    }

    fn call_waiting(
        &self,
        mut op: Op,
        waiter: &Rc<Waiter>,
        brought: Brought,
        limit: Duration,
    ) -> Call {
        self.waiters.give_place(&mut op, waiter, &self.channel, &brought);
        self.ask(op, limit)
    }

    fn tells_waiters(&self) -> bool {
        true
    }

    fn may_be_left(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    fn is_cut_off_from_the_past(&self) -> bool {
        true
    }
}
