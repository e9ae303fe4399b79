//! The queue poller: polls for waiters in queues, many in one call.
//!
//! A waiter is notified of its turn; its timer is only for lost notifications. With ten thousand of
//! them these timers would be hundreds of scripts a second, each of which finds that nothing has
//! changed. So the queue poller has the timers, and wakes a waiter only when it may acquire.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    future::Future,
    pin::Pin,
    rc::Rc,
    time::Duration,
};

use tenure_core::{Held, LockKey, Op, Poll, PollAnswer, Reply, Timestamp, Waiting};
use tokio::sync::Notify;

use super::{limits::MAX_LIMIT, state::State};
use crate::{
    clock,
    error::{NodeError, NodeErrorKind},
    node::{Node, QueueWaiter, WaiterEvent, Watch, Watched},
    random, task,
};

/// The waiters of this client that are in a queue and have nothing to do.
#[derive(Debug, Default)]
pub(super) struct QueuePoller {
    parked: RefCell<HashMap<RegistrationId, Parked>>,
    /// When to poll for which, earliest first; without those that are being polled for.
    due: RefCell<BTreeSet<(Timestamp, RegistrationId)>>,
    /// What the poller's task sleeps until.
    sleeping_until: Cell<Timestamp>,
    sooner: Notify,
    /// Calls that are not answered.
    calls: Cell<usize>,
    answered: Notify,
    next_id: Cell<u64>,
}

/// Names one stay of one waiter. Never used twice, so that no answer comes to a later stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct RegistrationId(u64);

/// One waiter.
#[derive(Debug)]
struct Parked {
    key: LockKey,
    waiter: Rc<QueueWaiter>,
    /// The last try of its wait, which it makes itself.
    deadline: Timestamp,
    /// When it last learned the state of its lock.
    known_at: Timestamp,
    due: Timestamp,
    /// Of the head: notifies it at once when there is no key any more.
    watch: Option<Rc<Watch>>,
}

impl Parked {
    /// Watches the key for the head: no message says that a lock was deleted by hand.
    fn is_watched_as(&mut self, position: u64, held: &Held, node: &dyn Node) -> bool {
        if position > 0 || held.holder.is_foreign() || self.watch.is_some() {
            return true;
        }
        let waiter = Rc::downgrade(&self.waiter);
        let poll = move || {
            if let Some(waiter) = waiter.upgrade() {
                waiter.notify(WaiterEvent::Acquire);
            }
        };
        let watch = Watch::new(self.key.clone(), None, poll);
        match node.watch(&watch) {
            Watched::Yes => self.watch = Some(watch),
            // So many heads that it costs too much to poll often for each.
            Watched::Full => {}
            Watched::Never => return false,
        }
        true
    }
}

/// A waiter's stay: while this lives, the poller polls for it.
pub(super) struct Registration<'a> {
    poller: &'a QueuePoller,
    id: RegistrationId,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        if let Some(parked) = self.poller.parked.borrow_mut().remove(&self.id) {
            self.poller.due.borrow_mut().remove(&(parked.due, self.id));
        }
    }
}

impl QueuePoller {
    /// Polls for a waiter from now on, at `due` for the first time, and notifies it when it has to
    /// acquire.
    pub(super) fn register(
        &self,
        key: &LockKey,
        waiter: &Rc<QueueWaiter>,
        deadline: Timestamp,
        due: Timestamp,
    ) -> Registration<'_> {
        let id = RegistrationId(self.next_id.get());
        self.next_id.set(id.0 + 1);
        let parked = Parked {
            key: key.clone(),
            waiter: Rc::clone(waiter),
            deadline,
            known_at: clock::now(),
            due,
            watch: None,
        };
        self.parked.borrow_mut().insert(id, parked);
        self.schedule(due, id);
        Registration { poller: self, id }
    }

    fn schedule(&self, due: Timestamp, id: RegistrationId) {
        self.due.borrow_mut().insert((due, id));
        if due < self.sleeping_until.get() {
            self.sooner.notify_one();
        }
    }

    /// When to wake: for the first that is due; and where several are parked, often enough to
    /// notice that this process was stopped. A single one gets a message when it is passed over.
    fn next(&self, now: Timestamp) -> Timestamp {
        let longest = if self.parked.borrow().len() > 1 { MAX_SLEEP } else { Duration::MAX };
        match self.due.borrow().first() {
            Some((due, _)) => (*due).min(now + longest),
            None => Timestamp::MAX,
        }
    }

    /// This process was stopped, longer than a provisional grant perhaps: its waiters may have been
    /// passed over, all but the first without a word.
    fn poll_for_all(&self, now: Timestamp) {
        let mut parked = self.parked.borrow_mut();
        let mut due = self.due.borrow_mut();
        for (at, id) in std::mem::take(&mut *due) {
            if let Some(one) = parked.get_mut(&id) {
                one.due = now.min(at);
                due.insert((one.due, id));
            }
        }
    }

    /// For whom to poll now, in one call: who is due, and who is due so soon that it may go along.
    fn take_due(&self, now: Timestamp) -> Vec<(RegistrationId, Poll)> {
        let parked = self.parked.borrow();
        let mut due = self.due.borrow_mut();
        if due.first().is_none_or(|(first, _)| *first > now) {
            return Vec::new();
        }
        let soon = due.range(..(now + MAX_AHEAD, RegistrationId(0)));
        let goes = |(at, id): &&(Timestamp, RegistrationId)| {
            parked.get(id).is_none_or(|one| *at <= now + ahead(at.since(one.known_at)))
        };
        let taken: Vec<_> = soon.filter(goes).take(MAX_IN_A_BATCH).copied().collect();
        let mut polls = Vec::with_capacity(taken.len());
        for (at, id) in taken {
            due.remove(&(at, id));
            let Some(one) = parked.get(&id) else { continue };
            match one.waiter.entry() {
                Some(entry) => {
                    let (key, token) = (one.key.clone(), one.waiter.token().clone());
                    polls.push((id, Poll { key, token, entry }));
                }
                None => one.waiter.notify(WaiterEvent::Acquire),
            }
        }
        // Those at one lock side by side: a node then has less to do for them.
        polls.sort_by(|(_, one), (_, other)| one.key.cmp(&other.key));
        polls
    }

    /// Hands in one answer. A waiter that has left meanwhile asks by itself, or does not care.
    fn answer(&self, node: &dyn Node, id: RegistrationId, answer: &PollAnswer) {
        let mut parked = self.parked.borrow_mut();
        let Some(one) = parked.get_mut(&id) else { return };
        let now = clock::now();
        let next = match answer {
            PollAnswer::Go => None,
            PollAnswer::Waits { held, position } => {
                let watched = one.is_watched_as(*position, held, node);
                Waiting::next_poll(one.deadline, now, held, *position, watched, random::jitter())
            }
        };
        match next {
            Some(next) if next < one.deadline => {
                (one.known_at, one.due) = (now, next);
                drop(parked);
                self.schedule(next, id);
            }
            Some(_) => {}
            None => one.waiter.notify(WaiterEvent::Acquire),
        }
    }
}

/// How much earlier than its time a poll may go along with others, when it is `pause` after the
/// last one.
fn ahead(pause: Duration) -> Duration {
    (pause / GO_ALONG).min(MAX_AHEAD)
}

impl State {
    /// Polls for the waiters, for as long as the engine runs.
    pub(super) async fn run_queue_poller(self: Rc<Self>) {
        let poller = &self.poller;
        loop {
            if poller.calls.get() >= MAX_CALLS {
                poller.answered.notified().await;
                continue;
            }
            let next = poller.next(clock::now());
            poller.sleeping_until.set(next);
            tokio::select! {
                () = self.timers.sleep_until(next) => {}
                () = poller.sooner.notified() => continue,
            }
            let now = clock::now();
            if now.since(next) >= OVERSLEPT {
                poller.poll_for_all(now);
            }
            let batch = poller.take_due(now);
            if !batch.is_empty() {
                poller.calls.set(poller.calls.get() + 1);
                let state = Rc::clone(&self);
                task::spawn(async move {
                    state.poll(batch).await;
                    state.poller.calls.set(state.poller.calls.get() - 1);
                    state.poller.answered.notify_one();
                });
            }
            // Others' ops go between the batches.
            tokio::task::yield_now().await;
        }
    }

    /// Looks for a batch. One at whose lock the user may not poll must not harm the others: then by
    /// halves.
    fn poll(&self, batch: Vec<(RegistrationId, Poll)>) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async move {
            match self.ask_polls(&batch).await {
                Err(error) if error.kind() == NodeErrorKind::NoPermission && batch.len() > 1 => {
                    let mut first = batch;
                    let second = first.split_off(first.len() / 2);
                    self.poll(first).await;
                    self.poll(second).await;
                }
                // Their own attempts find out what is wrong, and how long to bear it.
                Err(_) => {
                    batch.iter().for_each(|(id, _)| {
                        self.poller.answer(&**self.nodes.first(), *id, &PollAnswer::Go);
                    });
                }
                Ok(answers) => {
                    for ((id, _), answer) in batch.iter().zip(answers) {
                        self.poller.answer(&**self.nodes.first(), *id, &answer);
                    }
                }
            }
        })
    }

    async fn ask_polls(
        &self,
        batch: &[(RegistrationId, Poll)],
    ) -> Result<Vec<PollAnswer>, NodeError> {
        let polls = batch.iter().map(|(_, poll)| poll.clone()).collect();
        match self.nodes.first().call(Op::Poll(polls), MAX_LIMIT).await? {
            Reply::Polled(answers) => Ok(answers),
            _ => Err(NodeError::new(self.nodes.first().name(), NodeErrorKind::Protocol)),
        }
    }
}

/// At 64 locks that holds up a server for about 0.4 ms; at a single one, for half of that.
const MAX_IN_A_BATCH: usize = 64;

/// So that ten thousand polls that are due at once are never all in memory, nor all in front of
/// what others ask.
const MAX_CALLS: usize = 8;

/// A poll goes along with others when it is due within 1/16 of its pause: so batching makes at most
/// 7 % more polls, and no more than 11 a second at a foreign holder.
const GO_ALONG: u32 = 16;

/// No poll goes along earlier than this: a call a second is little enough.
const MAX_AHEAD: Duration = Duration::from_secs(1);

/// While several are parked.
const MAX_SLEEP: Duration = Duration::from_millis(500);

/// Who sleeps so much longer than it wanted was stopped: a stop as long as the least provisional
/// grant shows.
const OVERSLEPT: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_pause_is_cut_by_a_second_and_a_short_one_by_little() {
        assert_eq!(ahead(Duration::from_secs(60)), MAX_AHEAD);
        assert_eq!(ahead(Duration::from_secs(8)), Duration::from_millis(500));
        assert_eq!(ahead(Duration::from_millis(96)), Duration::from_millis(6));
    }
}
