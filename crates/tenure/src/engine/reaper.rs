//! The reaper: gives back what is not wanted any more, until a server says that it is back.

use std::{cell::Cell, num::NonZeroU32, rc::Rc, time::Duration};

use tenure_core::{Backoff, LockKey, LossReason, Next, Op, Release, Reply, Timestamp, Token};
use tokio::sync::{Notify, oneshot};

use super::{
    renewal::Entry,
    state::{State, command_limit},
};
use crate::{
    clock::{self, Timers},
    error::{NodeError, NodeErrorKind, ReleaseError},
    event,
    node::{LATEST_ARRIVAL, Standing},
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
    pub(super) fn is_struggling(&self) -> bool {
        self.struggling.get() > 0
    }

    /// Waits for the answers to all releases, as long as one op may take at most; returns how many
    /// are still open.
    pub(super) async fn answers(&self, timers: &Rc<Timers>) -> usize {
        let end = clock::now() + command_limit(Duration::MAX);
        while self.jobs.get() > 0 && clock::now() < end {
            tokio::select! {
                () = self.answered.notified() => {}
                () = timers.sleep_until(end) => {}
            }
        }
        self.jobs.get()
    }

    fn struggle(&self) -> impl Drop + use<'_> {
        self.struggling.set(self.struggling.get() + 1);
        Struggle(self)
    }
}

/// One release under way: open from the moment it is wanted, before its task runs.
struct Job(Rc<State>);

impl Job {
    fn begin(state: &Rc<State>) -> Self {
        state.reaper.jobs.set(state.reaper.jobs.get() + 1);
        Self(Rc::clone(state))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let reaper = &self.0.reaper;
        reaper.jobs.set(reaper.jobs.get() - 1);
        reaper.answered.notify_waiters();
    }
}

struct Struggle<'a>(&'a Reaper);

impl Drop for Struggle<'_> {
    fn drop(&mut self) {
        self.0.struggling.set(self.0.struggling.get() - 1);
    }
}

/// A key to give back.
struct Unwanted {
    key: LockKey,
    token: Token,
    standing: Standing,
    /// The key has ended by then, and there is nothing to give back.
    until: Timestamp,
}

impl State {
    /// Undoes an attempt whose outcome nobody knows, or nobody waits for.
    pub(super) fn undo(
        self: &Rc<Self>,
        key: LockKey,
        token: Token,
        standing: Standing,
        until: Timestamp,
    ) {
        let until = until + LATEST_ARRIVAL;
        let mut unwanted = Unwanted { key, token, standing, until };
        // Queued now, behind the attempt's own request.
        let first = self.ask_release(&unwanted);
        let job = Job::begin(self);
        task::spawn(async move {
            let state = &job.0;
            let first = first.await;
            // The connection may still deliver the attempt, after its undoing over the next one.
            unwanted.standing.ambiguous |= first.as_ref().is_err_and(NodeError::may_be_applied);
            if state.until_answered(&unwanted, first).await.is_err() {
                return;
            }
            // A connection that broke may still deliver the attempt, after this release. It may
            // have broken after the attempt was given up, when nobody heard of it any more.
            if !state.node.is_cut_off_from_the_past() {
                unwanted.standing.ambiguous = true;
                state.timers.sleep_until(clock::now() + LATE_LOOK).await;
                let again = state.ask_release(&unwanted).await;
                _ = state.until_answered(&unwanted, again).await;
            }
        });
    }

    /// Gives a lease back, tells the caller what came of it, and goes on until it is answered.
    pub(super) fn give_back(
        self: &Rc<Self>,
        entry: Entry,
        reply: Option<oneshot::Sender<Result<(), ReleaseError>>>,
    ) {
        let lost = entry.cell.loss();
        let held = clock::now().since(entry.granted);
        let unwanted = Unwanted {
            key: entry.cell.key().clone(),
            token: entry.cell.token().clone(),
            standing: entry.standing.clone(),
            until: entry.lease.deadline() + entry.lease.ttl().get(),
        };
        let class = entry.class.clone();
        let turn = |n: NonZeroU32| random::jitter().is_multiple_of(u64::from(n.get()));
        let open_ms = if entry.let_others_in.is_some_and(turn) { OPEN_MS } else { 0 };
        entry.settle();
        let first = self.ask_opening(&unwanted, open_ms);
        let job = Job::begin(self);
        task::spawn(async move {
            let first = first.await;
            let result = match &first {
                Ok((release, _)) => judge(release, lost),
                Err(error) => {
                    event::release_unconfirmed(&unwanted.key, error);
                    let unconfirmed = || ReleaseError::Unconfirmed(error.clone());
                    Err(lost.map_or_else(unconfirmed, ReleaseError::NotHeld))
                }
            };
            if result.is_ok() {
                event::released(&unwanted.key, &class, held);
            }
            if let Some(reply) = reply {
                // A caller that has stopped waiting is no error: the release went out.
                _ = reply.send(result);
            }
            let opened = matches!(first, Ok((_, Next::Open)));
            _ = job.0.until_answered(&unwanted, first).await;
            if opened {
                // The next waiter was told to look by then; it may have died since.
                let state = Rc::clone(&job.0);
                drop(job);
                state.timers.sleep_until(clock::now() + OPEN_LOOK).await;
                _ = state.ask_release(&unwanted).await;
            }
        });
    }

    /// Repeats a release that was not answered, until it is, its key has ended, or the server says
    /// that it never will; and one that was answered, while there are dead waiters to drop.
    async fn until_answered(
        &self,
        unwanted: &Unwanted,
        first: Result<Answered, NodeError>,
    ) -> Result<Answered, NodeError> {
        let mut backoff = Backoff::new(LEAST_PAUSE, MOST_PAUSE);
        let mut result = first;
        loop {
            match &result {
                Ok((_, Next::More)) => {}
                Err(error) if error.is_retryable() && clock::now() < unwanted.until => {
                    let _struggling = self.reaper.struggle();
                    let pause = backoff.next_delay(random::jitter());
                    self.timers.sleep_until(clock::now() + pause).await;
                }
                Ok(_) | Err(_) => return result,
            }
            result = self.ask_release(unwanted).await;
        }
    }

    /// Queues a release at once; its answer comes later.
    fn ask_release(
        &self,
        unwanted: &Unwanted,
    ) -> impl Future<Output = Result<Answered, NodeError>> + use<> {
        self.ask_opening(unwanted, 0)
    }

    /// As [`State::ask_release`], but the lock is left free for so long first.
    fn ask_opening(
        &self,
        unwanted: &Unwanted,
        open_ms: u64,
    ) -> impl Future<Output = Result<Answered, NodeError>> + use<> {
        let Standing { entries, ambiguous } = unwanted.standing.clone();
        let (key, token) = (unwanted.key.clone(), unwanted.token.clone());
        let op = Op::Release { key, token, entries, bury: ambiguous, open_ms, number: None };
        let answer = self.node.call(op, command_limit(Duration::MAX));
        let out_of_step = NodeError::new(self.node.name(), NodeErrorKind::Protocol);
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

/// What a release that was answered means to the one who held the lease.
fn judge(release: &Release, lost: Option<LossReason>) -> Result<(), ReleaseError> {
    let reason = match (release, lost) {
        (Release::Released(_), None) => return Ok(()),
        (Release::Other(holder), _) => LossReason::Taken { holder: holder.clone() },
        (_, Some(reason)) => reason,
        (Release::Free, None) => LossReason::Gone,
    };
    Err(ReleaseError::NotHeld(reason))
}

/// When to look again for a command that arrived after its undoing.
const LATE_LOOK: Duration = Duration::from_secs(1);

/// Longer than most clients of other libraries pause between two looks: 100 to 250 ms.
const OPEN_MS: u64 = 300;

/// When to look whether a lock that was left free has found a holder.
const OPEN_LOOK: Duration = Duration::from_millis(OPEN_MS + 100);

const LEAST_PAUSE: Duration = Duration::from_millis(20);
const MOST_PAUSE: Duration = Duration::from_secs(1);
