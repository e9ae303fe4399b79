//! The reaper: releases what is not wanted any more, until a server confirms the release.

use std::{
    cell::{Cell, RefCell},
    num::NonZeroU32,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use tenure_core::{
    Backoff, FencingToken, LockKey, LossReason, Next, NodeId, Op, Release, Reply, Timestamp, Token,
};
use tokio::sync::Notify;

use super::{
    command::ReleaseReply,
    lease::LeaseCell,
    leases::LeaseEntry,
    limits::MAX_LIMIT,
    majority::{KeyState, MajorityCount, QuorumResult},
    placement::NodeHold,
    state::State,
    status::OpenRelease,
};
use crate::{
    clock::{self, Timers},
    error::{NodeError, NodeErrorKind, ReleaseError},
    event::{self, Class},
    node::{LATEST_ARRIVAL, Residue},
    random, task,
};

/// Releases under way.
#[derive(Debug, Default)]
pub(super) struct Reaper {
    /// Not answered yet.
    jobs: Cell<usize>,
    /// Not answered at the last try, and pausing before the next.
    struggling: Cell<usize>,
    answered: Notify,
}

impl Reaper {
    /// Whether a release has failed and is not on its way again yet.
    pub(super) fn is_retrying(&self) -> bool {
        self.struggling.get() > 0
    }

    /// Waits for the answers to all releases, as long as one op may take at most; returns how many
    /// are still open.
    pub(super) async fn answers(&self, timers: &Rc<Timers>) -> usize {
        let end = clock::now() + MAX_LIMIT;
        while self.jobs.get() > 0 && clock::now() < end {
            tokio::select! {
                () = self.answered.notified() => {}
                () = timers.sleep_until(end) => {}
            }
        }
        self.jobs.get()
    }

    fn retry(&self) -> impl Drop + use<'_> {
        self.struggling.set(self.struggling.get() + 1);
        RetryGuard(self)
    }
}

/// One release under way: open from the moment it is wanted, before its task runs.
struct Job {
    state: Rc<State>,
    /// While something may be on the node.
    _open: Option<OpenRelease>,
}

impl Job {
    fn begin(state: &Rc<State>, is_vacant: bool) -> Self {
        state.reaper.jobs.set(state.reaper.jobs.get() + 1);
        let open = (!is_vacant).then(|| OpenRelease::begin(&state.status));
        Self { state: Rc::clone(state), _open: open }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let reaper = &self.state.reaper;
        reaper.jobs.set(reaper.jobs.get() - 1);
        reaper.answered.notify_waiters();
    }
}

struct RetryGuard<'a>(&'a Reaper);

impl Drop for RetryGuard<'_> {
    fn drop(&mut self) {
        self.0.struggling.set(self.0.struggling.get() - 1);
    }
}

/// A key to release, on one node.
struct PendingRelease {
    node: NodeId,
    key: LockKey,
    token: Token,
    residue: Residue,
    /// The number to leave behind, where several nodes vote.
    number: Option<FencingToken>,
    /// The key has ended by then, and there is nothing to release.
    until: Timestamp,
}

impl State {
    /// Undoes an attempt whose outcome nobody knows, or nobody waits for.
    pub(super) fn undo(
        self: &Rc<Self>,
        node: NodeId,
        key: LockKey,
        token: Token,
        residue: Residue,
        until: Timestamp,
    ) {
        let until = until + LATEST_ARRIVAL;
        let pending = PendingRelease { node, key, token, residue, number: None, until };
        // Queued now, behind the attempt's own request.
        let first = self.ask_release(&pending);
        let job = Job::begin(self, false);
        task::spawn(async move {
            let first = first.await;
            job.state.until_undone(pending, first).await;
        });
    }

    /// Repeats the release of a key whose request may still arrive.
    async fn until_undone(&self, mut pending: PendingRelease, first: Result<Answered, NodeError>) {
        // The connection may still deliver the attempt, after its undoing over the next one.
        pending.residue.ambiguous |= first.as_ref().is_err_and(NodeError::may_be_applied);
        if self.until_answered(&pending, first).await.is_err() {
            return;
        }
        // A connection that broke may still deliver the attempt, after this release. It may
        // have broken after the attempt was given up, when nobody noticed it any more.
        if !self.nodes.get(pending.node).old_connections_are_closed() {
            pending.residue.ambiguous = true;
            self.timers.sleep_until(clock::now() + LATE_LOOK).await;
            let again = self.ask_release(&pending).await;
            _ = self.until_answered(&pending, again).await;
        }
    }

    /// Releases a lease on every node, returns the outcome to the caller, and goes on until each
    /// has answered.
    pub(super) fn give_back(self: &Rc<Self>, entry: LeaseEntry, reply: Option<ReleaseReply>) {
        let lost = entry.cell.loss();
        let held = clock::now().since(entry.granted);
        let (key, token) = (entry.cell.key().clone(), entry.cell.token().clone());
        let until = entry.lease.deadline() + entry.lease.ttl().get();
        let is_sole = self.nodes.sole().is_some();
        let turn = |n: NonZeroU32| random::jitter().is_multiple_of(u64::from(n.get()));
        // Several nodes have no queue that others would have to be let into.
        let yields = is_sole && entry.yield_to_pollers.is_some_and(turn);
        let yield_ms = if yields { YIELD_MS } else { 0 };
        // So that all of them give the same number next.
        let number = (!is_sole).then(|| entry.cell.number());
        let release = ReleaseJob {
            cell: Arc::clone(&entry.cell),
            class: entry.class.clone(),
            held,
            lost,
            majority: MajorityCount::new(self.nodes.quorum()),
            reply,
            is_over: false,
        };
        let release = Rc::new(RefCell::new(release));
        for ((node, _), hold) in self.nodes.iter().zip(entry.placement.iter()) {
            let (key, token) = (key.clone(), token.clone());
            let residue = hold.residue_at_release();
            let pending = PendingRelease { node, key, token, residue, number, until };
            self.give_back_on_one(pending, yield_ms, hold, Rc::clone(&release));
        }
        entry.settle();
    }

    fn give_back_on_one(
        self: &Rc<Self>,
        pending: PendingRelease,
        yield_ms: u64,
        hold: &NodeHold,
        release: Rc<RefCell<ReleaseJob>>,
    ) {
        let is_one_of_several = pending.number.is_some();
        let (is_unsure, is_vacant) = (hold.is_unsure, is_one_of_several && hold.is_vacant());
        let first = self.ask_opening(&pending, yield_ms);
        let job = Job::begin(self, is_vacant);
        task::spawn(async move {
            let first = first.await;
            release.borrow_mut().answered(&first);
            drop(release);
            // One that was down when the lease was granted need not be asked again and again.
            if is_vacant {
                return;
            }
            if is_unsure {
                job.state.until_undone(pending, first).await;
                return;
            }
            let opened = matches!(first, Ok((_, Next::Yielded)));
            _ = job.state.until_answered(&pending, first).await;
            if opened {
                // The next waiter was asked to poll by then; it may have died since.
                let state = Rc::clone(&job.state);
                drop(job);
                state.timers.sleep_until(clock::now() + YIELD_LOOK).await;
                _ = state.ask_release(&pending).await;
            }
        });
    }

    /// Repeats a release that was not answered, until it is, its key has ended, or the server says
    /// that it never will; and one that was answered, while there are dead waiters to drop.
    async fn until_answered(
        &self,
        pending: &PendingRelease,
        first: Result<Answered, NodeError>,
    ) -> Result<Answered, NodeError> {
        let mut backoff = Backoff::new(MIN_PAUSE, MAX_PAUSE);
        let mut result = first;
        loop {
            match &result {
                Ok((_, Next::More)) => {}
                Err(error) if error.is_retryable() && clock::now() < pending.until => {
                    let _retrying = self.reaper.retry();
                    let pause = backoff.next_delay(random::jitter());
                    self.timers.sleep_until(clock::now() + pause).await;
                    // Many may be kept from a node that is down: they wait for it, and do not all
                    // ask it again and again.
                    tokio::select! {
                        biased;
                        () = self.nodes.get(pending.node).reachable() => {}
                        () = self.timers.sleep_until(pending.until) => {}
                    }
                }
                Ok(_) | Err(_) => return result,
            }
            result = self.ask_release(pending).await;
        }
    }

    /// Queues a release at once; its answer comes later.
    fn ask_release(
        &self,
        pending: &PendingRelease,
    ) -> impl Future<Output = Result<Answered, NodeError>> + use<> {
        self.ask_opening(pending, 0)
    }

    /// As [`State::ask_release`], but the lock is left free for so long first.
    fn ask_opening(
        &self,
        pending: &PendingRelease,
        yield_ms: u64,
    ) -> impl Future<Output = Result<Answered, NodeError>> + use<> {
        let Residue { entries, ambiguous } = pending.residue.clone();
        let (key, token) = (pending.key.clone(), pending.token.clone());
        let op = Op::Release {
            key,
            token,
            entries,
            leave_tombstone: ambiguous,
            yield_ms,
            number: pending.number,
        };
        // A failed request is undone wherever it was sent, on a second address too.
        let answer = match pending.number {
            Some(_) => self.nodes.call(pending.node, op, MAX_LIMIT),
            None => self.nodes.get(pending.node).call(op, MAX_LIMIT),
        };
        let name = self.nodes.get(pending.node).name();
        let out_of_step = NodeError::new(name, NodeErrorKind::Protocol);
        async move {
            match answer.await? {
                Reply::Released { release, next } => Ok((release, next)),
                _ => Err(out_of_step),
            }
        }
    }
}

/// What became of a release, and whom the lock went to.
type Answered = (Release, Next);

/// A lease that is being released, for the one who held it.
struct ReleaseJob {
    cell: Arc<LeaseCell>,
    class: Class,
    held: Duration,
    lost: Option<LossReason>,
    majority: MajorityCount,
    reply: Option<ReleaseReply>,
    is_over: bool,
}

impl ReleaseJob {
    /// Takes one node's first answer, and answers the caller as soon as it is certain what they all
    /// come to.
    fn answered(&mut self, answer: &Result<Answered, NodeError>) {
        self.majority.add(KeyState::of_release(answer.as_ref().map(|(release, _)| release)));
        if self.is_over {
            return;
        }
        let Some(result) = self.majority.result() else { return };
        self.is_over = true;
        let result = self.judge(result);
        if result.is_ok() {
            let number = self.cell.number();
            event::released(self.cell.key(), &self.class, number, self.held);
        }
        if let Some(reply) = self.reply.take() {
            // A caller that has stopped waiting is no error: the release went out.
            _ = reply.send(result);
        }
    }

    fn judge(&mut self, result: QuorumResult) -> Result<(), ReleaseError> {
        let key = self.cell.key();
        let reason = match (result, self.lost.take()) {
            (QuorumResult::Ours, None) => return Ok(()),
            (QuorumResult::Indeterminate(errors), lost) => {
                errors.iter().for_each(|error| event::release_unconfirmed(key, error));
                match lost {
                    Some(reason) => reason,
                    None => return Err(ReleaseError::Unconfirmed(errors.of_lock(key))),
                }
            }
            // That its key was gone may have been noticed before.
            (QuorumResult::GivenUp, None | Some(LossReason::Gone)) => {
                return Err(ReleaseError::AlreadyReleased { key: key.clone() });
            }
            (QuorumResult::Other(holder), _) => LossReason::Taken { holder },
            (_, Some(reason)) => reason,
            (QuorumResult::Gone, None) => LossReason::Gone,
        };
        Err(ReleaseError::NotHeld(self.cell.lost_by(reason)))
    }
}

/// When to look again for a command that arrived after its undoing.
const LATE_LOOK: Duration = Duration::from_secs(1);

/// Longer than most clients of other libraries pause between two looks: 100 to 250 ms.
const YIELD_MS: u64 = 300;

/// When to look whether a lock that was left free has found a holder.
const YIELD_LOOK: Duration = Duration::from_millis(YIELD_MS + 100);

const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);
