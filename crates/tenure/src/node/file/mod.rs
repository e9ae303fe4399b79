//! The embedded store: a node in a file, for the processes of one host.

mod place;
mod stopped;
mod store;

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc as std_mpsc,
    },
    time::Duration,
};

use tenure_core::{Op, Reply, Timestamp};
use tokio::sync::{Notify, oneshot};

pub(crate) use self::place::Location;
use self::store::Store;
use super::{Call, Freed, Node};
use crate::{
    clock::{self, Timers},
    error::{NodeError, NodeErrorKind},
};

/// A store in a file. SQLite blocks, so it runs on a thread of its own, one op after the other.
#[derive(Debug)]
pub(super) struct FileNode {
    name: Arc<str>,
    timers: Rc<Timers>,
    jobs: std_mpsc::Sender<Job>,
    /// Ops that the thread has not finished.
    pending: Arc<AtomicUsize>,
    /// Told when any process may have changed the store.
    changed: Arc<Notify>,
}

/// What the thread is asked.
enum Job {
    Op(Request),
    /// Somebody waits for a change: look for one until nobody does.
    Watch,
}

/// One op on its way.
struct Request {
    op: Op,
    deadline: Timestamp,
    started: Arc<AtomicBool>,
    answer: oneshot::Sender<Result<Reply, NodeError>>,
}

impl FileNode {
    /// Nothing is opened before the first op.
    pub(super) fn open(name: String, location: Location, timers: &Rc<Timers>) -> Self {
        let (jobs, requests) = std_mpsc::channel();
        let node = Self {
            name: name.into(),
            timers: Rc::clone(timers),
            jobs,
            pending: Arc::default(),
            changed: Arc::default(),
        };
        let worker = Worker {
            store: Store::new(Arc::clone(&node.name), location),
            requests,
            pending: Arc::clone(&node.pending),
            changed: Arc::clone(&node.changed),
        };
        // Without a thread every op is answered by a closed channel.
        _ = std::thread::Builder::new().name("tenure-store".into()).spawn(|| worker.run());
        node
    }
}

impl Node for FileNode {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn call(&self, op: Op, limit: Duration) -> Call {
        let (answer, answered) = oneshot::channel();
        let started = Arc::new(AtomicBool::new(false));
        let deadline = clock::now() + limit;
        self.pending.fetch_add(1, Ordering::AcqRel);
        let request = Request { op, deadline, started: Arc::clone(&started), answer };
        if self.jobs.send(Job::Op(request)).is_err() {
            self.pending.fetch_sub(1, Ordering::AcqRel);
        }
        let late = NodeError::new(&self.name, NodeErrorKind::TimedOut);
        let gone = NodeError::new(&self.name, NodeErrorKind::Disconnected);
        let limit = self.timers.sleep_until(deadline);
        Box::pin(async move {
            tokio::select! {
                biased;
                result = answered => result.unwrap_or_else(|_| Err(gone.maybe_applied())),
                () = limit => {
                    let started = started.load(Ordering::Acquire);
                    Err(if started { late.maybe_applied() } else { late })
                }
            }
        })
    }

    fn is_written(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    fn is_cut_off_from_the_past(&self) -> bool {
        true
    }

    fn freed(&self) -> Freed {
        let changed = Arc::clone(&self.changed);
        // Without a thread there is nothing to watch, and nothing to wait for.
        _ = self.jobs.send(Job::Watch);
        Box::pin(async move { changed.notified().await })
    }
}

/// The thread's side.
struct Worker {
    store: Store,
    requests: std_mpsc::Receiver<Job>,
    pending: Arc<AtomicUsize>,
    changed: Arc<Notify>,
}

impl Worker {
    fn run(mut self) {
        let mut watching_until = Timestamp::default();
        loop {
            let watching = clock::now() < watching_until;
            let job = if watching {
                self.requests.recv_timeout(LOOK)
            } else {
                self.requests.recv().map_err(|_| std_mpsc::RecvTimeoutError::Disconnected)
            };
            match job {
                Ok(Job::Op(request)) => self.carry_out(request),
                Ok(Job::Watch) => watching_until = clock::now() + WATCH,
                Err(std_mpsc::RecvTimeoutError::Timeout) => {}
                Err(std_mpsc::RecvTimeoutError::Disconnected) => return,
            }
            if watching && self.store.has_changed() {
                self.changed.notify_waiters();
            }
        }
    }

    fn carry_out(&mut self, request: Request) {
        let Request { op, deadline, started, answer } = request;
        // As on a server: nobody waits for it, and nothing is lost when it is never done.
        if !answer.is_closed() || matches!(op, Op::Release { .. }) {
            started.store(true, Ordering::Release);
            // A caller that has stopped waiting is no error.
            _ = answer.send(self.store.apply(&op, deadline));
        }
        self.pending.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How often the thread looks for changes while somebody waits: two looks and an op within 50 ms.
const LOOK: Duration = Duration::from_millis(15);

/// Each wait asks anew, at the latest after its longest pause.
const WATCH: Duration = Duration::from_millis(500);
