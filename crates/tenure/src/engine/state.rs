//! The engine's state and its loop.

use std::{cell::Cell, io, rc::Rc, sync::Arc, time::Duration};

use tenure_core::Ttl;
use tokio::sync::{oneshot, watch};

use super::{
    Command, EXIT_FLUSH,
    command::ReleaseReply,
    exit::Flush,
    inbox::{Commands, WeakInbox},
    lease::{LeaseId, Leased},
    leases::Leases,
    limits::MAX_LIMIT,
    nodes::Nodes,
    queue_poller::QueuePoller,
    reaper::Reaper,
    status::{EngineStatus, OpenRelease},
    watch::TrackQueue,
};
use crate::{
    address::Address,
    clock::{self, Timers},
    error::ExtendError,
    quiet::Work,
    task,
};

/// Everything the engine's tasks share. They run on one thread, so cells are enough.
#[derive(Debug)]
pub(super) struct State {
    pub(super) nodes: Nodes,
    pub(super) timers: Rc<Timers>,
    pub(super) leases: Leases,
    pub(super) to_track: TrackQueue,
    pub(super) poller: QueuePoller,
    pub(super) reaper: Reaper,
    pub(super) inbox: WeakInbox,
    pub(super) status: Arc<EngineStatus>,
    /// Acquisitions under way.
    acquiring: Cell<usize>,
    /// The client is being closed: acquisitions undo themselves.
    closing: watch::Sender<bool>,
    next_lease: Cell<u64>,
}

impl State {
    /// Must be called inside the engine's runtime.
    pub(super) fn new(
        nodes: &[Address],
        inbox: WeakInbox,
        status: &Arc<EngineStatus>,
        work: Option<&Arc<Work>>,
    ) -> io::Result<Rc<Self>> {
        let timers = Timers::new(&status.pulse)?;
        let nodes = Nodes::open(nodes, &timers, work).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Rc::new(Self {
            nodes,
            timers,
            leases: Leases::new(Arc::clone(&status.pulse)),
            to_track: TrackQueue::default(),
            poller: QueuePoller::default(),
            reaper: Reaper::default(),
            inbox,
            status: Arc::clone(status),
            acquiring: Cell::new(0),
            closing: watch::Sender::new(false),
            next_lease: Cell::new(0),
        }))
    }

    /// Carries out commands until one of them says stop.
    pub(super) async fn run(self: Rc<Self>, mut commands: Commands) {
        let timers = Rc::clone(&self.timers);
        task::spawn(async move {
            if let Err(error) = timers.run().await {
                tracing::error!(%error, "the timers failed");
                task::give_up();
            }
        });
        task::spawn(Rc::clone(&self).run_renewals());
        task::spawn(Rc::clone(&self).run_watches());
        task::spawn(Rc::clone(&self).run_queue_poller());
        while let Some(command) = commands.recv().await {
            match command {
                Command::Stop => {
                    self.flush(&mut commands).await;
                    return;
                }
                Command::Close { reply } => {
                    self.cancel_acquisitions().await;
                    let unanswered = self.reaper.answers(&self.timers).await;
                    self.leases.clear();
                    // The caller may have stopped waiting.
                    _ = reply.send(unanswered);
                    return;
                }
                command => self.handle(command),
            }
        }
    }

    fn handle(self: &Rc<Self>, command: Command) {
        match command {
            Command::Acquire { request, reply } => {
                let acquiring = self.begin_acquiring();
                // In a box: there may be many waiters, and a task has room for its future twice.
                task::spawn(Box::pin(Rc::clone(self).acquire(request, reply, acquiring)));
            }
            Command::Extend { lease, ttl, reply } => {
                task::spawn(Rc::clone(self).extend(lease, ttl, reply));
            }
            Command::Revalidate { lease, reply } => {
                let state = Rc::clone(self);
                // A caller that has stopped waiting is no error.
                task::spawn(async move { _ = reply.send(state.proved(&lease).await) });
            }
            Command::Release { lease, reply, open } => self.release(lease, reply, &open),
            Command::Flush(flush) => task::spawn(Rc::clone(self).until_written(flush)),
            Command::Detach { lease } => self.leases.settle(lease),
            Command::Ask { op, reply } => {
                let answer = self.ask_all(&op, MAX_LIMIT);
                // A caller that has stopped waiting is no error.
                task::spawn(async move { _ = reply.send(answer.await) });
            }
            Command::Nodes { key, max_ttl, mode, reply } => {
                let reports = self.report(key, max_ttl, mode, MAX_LIMIT);
                // A caller that has stopped waiting is no error.
                task::spawn(async move { _ = reply.send(reports.await) });
            }
            Command::Close { .. } | Command::Stop => {}
        }
    }

    async fn extend(
        self: Rc<Self>,
        lease: Leased,
        ttl: Ttl,
        reply: oneshot::Sender<Result<(), ExtendError>>,
    ) {
        // A caller that has stopped waiting is no error; what the server did stays done.
        _ = reply.send(self.extended(&lease, ttl).await);
    }

    fn release(self: &Rc<Self>, lease: LeaseId, reply: Option<ReleaseReply>, _open: &OpenRelease) {
        // A lease that is not in the table was settled by an earlier command.
        if let Some(entry) = self.leases.remove(lease) {
            self.give_back(entry, reply);
        }
    }

    /// The exit flush: the callers are gone, so acquisitions undo themselves, and all that is left
    /// to do is to get the releases written.
    async fn flush(self: &Rc<Self>, commands: &mut Commands) {
        let end = clock::now() + EXIT_FLUSH;
        loop {
            while let Ok(command) = commands.try_recv() {
                self.handle(command);
            }
            // Everything that is ready to run gets to run before the look around.
            tokio::task::yield_now().await;
            let quiet = self.acquiring.get() == 0 && self.is_written() && commands.is_empty();
            if quiet || clock::now() >= end {
                return;
            }
            self.timers.sleep_until(clock::now() + FLUSH_LOOK).await;
        }
    }

    /// Waits until every release is written, at most as long as the exit flush; the engine goes on.
    async fn until_written(self: Rc<Self>, _flush: Flush) {
        let end = clock::now() + EXIT_FLUSH;
        loop {
            // First of all whatever is ready to run gets to run.
            self.timers.sleep_until(clock::now() + FLUSH_LOOK).await;
            if self.is_written() || clock::now() >= end {
                return;
            }
        }
    }

    fn is_written(&self) -> bool {
        !self.reaper.is_retrying() && self.nodes.is_drained()
    }

    /// Has every acquisition under way undo itself; its caller learns that the engine stops.
    async fn cancel_acquisitions(&self) {
        self.closing.send_replace(true);
        while self.acquiring.get() > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Resolves when the client is being closed.
    pub(super) async fn closing(&self) {
        // The sender lives as long as this.
        _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    pub(super) fn fresh_lease(&self) -> LeaseId {
        let id = self.next_lease.get();
        self.next_lease.set(id + 1);
        LeaseId(id)
    }

    /// Counts an acquisition for as long as the result lives.
    fn begin_acquiring(self: &Rc<Self>) -> Acquiring {
        self.acquiring.set(self.acquiring.get() + 1);
        Acquiring(Rc::clone(self))
    }
}

/// One acquisition under way.
pub(super) struct Acquiring(Rc<State>);

impl Drop for Acquiring {
    fn drop(&mut self) {
        self.0.acquiring.set(self.0.acquiring.get() - 1);
    }
}

/// How often the exit flush looks whether it is done.
const FLUSH_LOOK: Duration = Duration::from_micros(200);
