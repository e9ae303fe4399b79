//! The node that is a Redis or Valkey server.

mod connection;
mod fault;
#[cfg(test)]
mod fuzz;
mod greeting;
mod in_flight;
mod pubsub_channel;
mod request;
mod resp;
mod stream;
mod subscriptions;
mod tracking;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, VecDeque},
    rc::Rc,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use tenure_core::{Backoff, Channel, LockKey, Op};
use tokio::sync::{Notify, oneshot};

use self::{
    connection::Connection, greeting::OldConnections, pubsub_channel::Notifications,
    request::Request,
};
use super::{
    Node, PendingReply, QueueWaiter, Reach, ReleaseListener, RetryContext, ServerInstance, Watch,
    Watched, instance::ServerInfo, waiter::Waiters, watch::Watches,
};
use crate::{
    address::ServerAddress,
    clock::{self, Timers},
    error::{NodeError, NodeErrorKind},
    event, random, task,
};

/// A server, reached over one connection that is reopened when it ends.
///
/// Ops are written in the order of the calls, and those queued together leave in one write. The
/// connection is opened by the first op, not before.
#[derive(Debug)]
pub(super) struct RedisNode {
    shared: Rc<Shared>,
}

/// What the node's handle and its task share.
#[derive(Debug)]
struct Shared {
    address: Arc<ServerAddress>,
    name: Arc<str>,
    timers: Rc<Timers>,
    /// The engine has no other node.
    is_sole: bool,
    accepts_replica: Cell<bool>,
    /// Ops that no connection has taken yet.
    queue: RefCell<VecDeque<Request>>,
    /// Wakes the node's task when the queue or `hang_up` changed.
    task: RefCell<Option<Waker>>,
    next_request: Cell<u64>,
    /// Calls in a row that ran into their time limit.
    time_outs: Cell<u32>,
    /// The connection is to be given up.
    hang_up: Cell<bool>,
    /// Why the last connection could not be opened, while that is so.
    trouble: RefCell<Option<NodeError>>,
    /// The callers that wait for that to end, and how they are notified.
    in_wait: Cell<usize>,
    reached: Notify,
    /// Bytes that the socket has not taken, or releases that the server might discard on a close.
    unsafe_to_close: Cell<bool>,
    /// No command of an earlier connection can arrive any more.
    cut_off: Cell<bool>,
    /// Whom the last connection has met.
    instance: RefCell<Option<Rc<ServerInstance>>>,
    waiters: Waiters,
    notifications: Cell<Notifications>,
    /// What a round trip takes, smoothed.
    round_trip: Cell<Duration>,
    watches: Watches,
    /// Keys that the server has yet to be asked to track.
    to_track: RefCell<BTreeSet<LockKey>>,
    /// The server has not refused to track keys.
    tracks: Cell<bool>,
    /// Channels of locks that somebody began or ceased to listen to.
    to_listen: RefCell<Vec<Channel>>,
    /// The last attempt to connect failed, and the next one is not due yet.
    is_pausing: Cell<bool>,
}

impl RedisNode {
    pub(super) fn open(
        address: &Arc<ServerAddress>,
        timers: &Rc<Timers>,
        is_sole: bool,
    ) -> Rc<dyn Node> {
        let shared = Rc::new(Shared {
            address: Arc::clone(address),
            name: address.to_string().into(),
            timers: Rc::clone(timers),
            is_sole,
            accepts_replica: Cell::default(),
            queue: RefCell::default(),
            task: RefCell::default(),
            next_request: Cell::new(1),
            time_outs: Cell::new(0),
            hang_up: Cell::new(false),
            trouble: RefCell::default(),
            in_wait: Cell::new(0),
            reached: Notify::new(),
            unsafe_to_close: Cell::new(false),
            cut_off: Cell::new(true),
            instance: RefCell::default(),
            waiters: Waiters::default(),
            notifications: Cell::default(),
            round_trip: Cell::default(),
            watches: Watches::default(),
            to_track: RefCell::default(),
            tracks: Cell::new(true),
            to_listen: RefCell::default(),
            is_pausing: Cell::new(false),
        });
        task::spawn(run(Rc::clone(&shared)));
        Rc::new(Self { shared })
    }
}

impl RedisNode {
    fn ask(
        &self,
        op: Op,
        waiter: Option<(Rc<QueueWaiter>, RetryContext)>,
        limit: Duration,
    ) -> PendingReply {
        let shared = Rc::clone(&self.shared);
        if matches!(op, Op::Inspect { unproved: true, .. }) {
            shared.accepts_replica.set(true);
        }
        let (answer, answered) = oneshot::channel();
        let sent = Rc::new(Cell::new(false));
        let number = shared.next_request.get();
        shared.next_request.set(number + 1);
        // A waiter's next op must not meet this one on the same connection, so one time-out is
        // enough to end that.
        let most_time_outs = if waiter.is_some() { 1 } else { MAX_TIME_OUTS };
        shared.push(Request { op, number, waiter, answer, sent: Rc::clone(&sent) });
        let deadline = clock::now() + limit;
        Box::pin(async move {
            tokio::select! {
                biased;
                result = answered => {
                    result.unwrap_or_else(|_| Err(shared.error(NodeErrorKind::Disconnected)))
                }
                () = shared.timers.sleep_until(deadline) => {
                    Err(shared.time_out(sent.get(), most_time_outs))
                }
            }
        })
    }
}

impl Node for RedisNode {
    fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    fn call(&self, op: Op, limit: Duration) -> PendingReply {
        self.ask(op, None, limit)
    }

    fn call_waiting(
        &self,
        op: Op,
        waiter: &Rc<QueueWaiter>,
        context: RetryContext,
        limit: Duration,
    ) -> PendingReply {
        self.shared.waiters.add(waiter);
        self.ask(op, Some((Rc::clone(waiter), context)), limit)
    }

    fn notifies_waiters(&self) -> bool {
        self.shared.notifications.get() != Notifications::Unavailable
    }

    fn round_trip(&self) -> Duration {
        self.shared.round_trip.get()
    }

    fn trouble(&self) -> Option<NodeError> {
        self.shared.trouble.borrow().clone()
    }

    fn instance(&self) -> Option<Rc<ServerInstance>> {
        self.shared.instance.borrow().clone()
    }

    fn is_out_of_reach(&self) -> bool {
        self.shared.is_pausing.get()
    }

    fn subscribe(&self, listener: &Rc<ReleaseListener>) {
        if self.shared.waiters.listeners.add(listener) {
            self.shared.listens(listener.channel());
        }
    }

    fn unsubscribe(&self, listener: &Rc<ReleaseListener>) {
        if self.shared.waiters.listeners.remove(listener) {
            self.shared.listens(listener.channel());
        }
    }

    fn reachable(&self) -> Reach {
        let shared = Rc::clone(&self.shared);
        Box::pin(async move {
            let _waiting = shared.begin_waiting();
            while shared.trouble.borrow().as_ref().is_some_and(NodeError::is_retryable) {
                shared.reached.notified().await;
            }
        })
    }

    fn watch(&self, watch: &Rc<Watch>) -> Watched {
        if !self.shared.tracks.get() {
            return Watched::Never;
        }
        if !self.shared.watches.add(watch) {
            return Watched::Full;
        }
        self.shared.to_track.borrow_mut().insert(watch.key().clone());
        self.shared.wake();
        Watched::Yes
    }

    fn is_drained(&self) -> bool {
        let queue = self.shared.queue.borrow();
        !self.shared.unsafe_to_close.get() && queue.iter().all(Request::is_pointless)
    }

    fn old_connections_are_closed(&self) -> bool {
        self.shared.cut_off.get()
    }

    fn refusal(&self, words: &str) -> NodeError {
        self.shared.refusal(words)
    }
}

impl Shared {
    fn push(&self, request: Request) {
        self.queue.borrow_mut().push_back(request);
        self.wake();
    }

    fn wake(&self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// Somebody began or ceased to listen to a lock's channel.
    fn listens(&self, channel: &Channel) {
        self.to_listen.borrow_mut().push(channel.clone());
        self.wake();
    }

    /// Counts a caller that waits until the node is within reach, for as long as the result lives.
    fn begin_waiting(&self) -> impl Drop + use<'_> {
        self.in_wait.set(self.in_wait.get() + 1);
        self.wake();
        InWait(self)
    }

    /// A connection was made, or could not be made for this reason.
    fn set_trouble(&self, trouble: Option<NodeError>) {
        let may_end = trouble.as_ref().is_some_and(NodeError::is_retryable);
        self.trouble.replace(trouble);
        if !may_end {
            self.reached.notify_waiters();
        }
    }

    /// Takes a round trip into account: an eighth of each, as TCP does (RFC 6298).
    fn measure(&self, sample: Duration) {
        let smoothed = self.round_trip.get();
        let next = if smoothed.is_zero() { sample } else { (smoothed * 7 + sample) / 8 };
        self.round_trip.set(next);
    }

    /// A connection was made, and the server has reported so much of its run.
    fn meet(&self, info: &ServerInfo) {
        let mut run = self.instance.borrow_mut();
        let met = ServerInstance::met(info, run.as_ref());
        *run = Some(met);
    }

    fn error(&self, kind: NodeErrorKind) -> NodeError {
        NodeError::new(&self.name, kind)
    }

    /// What the server's error reply means.
    fn refusal(&self, words: &str) -> NodeError {
        fault::of_reply(&self.name, &self.address, words)
    }

    /// A call ran into its time limit: so many in a row, and the connection is given up.
    fn time_out(&self, sent: bool, most: u32) -> NodeError {
        if !sent {
            let trouble = self.trouble.borrow().clone();
            return trouble.unwrap_or_else(|| self.error(NodeErrorKind::TimedOut));
        }
        self.time_outs.set(self.time_outs.get() + 1);
        if self.time_outs.get() >= most {
            self.hang_up.set(true);
            self.wake();
        }
        self.error(NodeErrorKind::TimedOut).maybe_applied()
    }

    /// Waits for an op that somebody wants, or for somebody who only wants to have one.
    async fn work(&self) {
        std::future::poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            queue.retain(|request| !request.is_pointless());
            if queue.is_empty() && self.in_wait.get() == 0 {
                self.task.replace(Some(cx.waker().clone()));
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    fn fail_queue(&self, error: &NodeError) {
        for request in self.queue.take() {
            request.answer(Err(error.clone()));
        }
    }
}

/// See [`Shared::begin_waiting`].
struct InWait<'a>(&'a Shared);

impl Drop for InWait<'_> {
    fn drop(&mut self) {
        self.0.in_wait.set(self.0.in_wait.get() - 1);
    }
}

/// The node's task: connects when there is work, and again when the connection ends.
async fn run(shared: Rc<Shared>) {
    let mut backoff = Backoff::new(MIN_PAUSE, MAX_PAUSE);
    let mut old = OldConnections::default();
    loop {
        shared.work().await;
        shared.hang_up.set(false);
        shared.time_outs.set(0);
        let (error, lasted) = match Connection::open(&shared, &old).await {
            Ok(connection) => connection.serve(&mut old).await,
            Err(error) => (error, None),
        };
        shared.unsafe_to_close.set(false);
        // The next connection begins with all that is wanted then.
        shared.to_listen.take();
        // Their messages may be lost: they try again, which also makes the next connection.
        shared.waiters.wake_all();
        event::node_lost(&error, shared.trouble.borrow().is_none());
        // What was not sent yet goes over the next connection.
        if lasted.is_none() {
            shared.fail_queue(&error);
            shared.set_trouble(Some(error));
        }
        if lasted.is_some_and(|lasted| lasted >= SETTLED) {
            backoff.reset();
        }
        let pause = backoff.next_delay(random::jitter());
        shared.is_pausing.set(lasted.is_none());
        shared.timers.sleep_until(clock::now() + pause).await;
        shared.is_pausing.set(false);
    }
}

/// One may be a slow script; two are a dead peer or a hung server.
const MAX_TIME_OUTS: u32 = 2;

/// A server that restarts is back within milliseconds, and a holder wants it soon.
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// A connection that lasted this long had been established: the next one is opened soon.
const SETTLED: Duration = Duration::from_secs(1);

/// Four connection attempts a second do no harm, and a shorter outage is over sooner.
const MAX_PAUSE: Duration = Duration::from_millis(250);
