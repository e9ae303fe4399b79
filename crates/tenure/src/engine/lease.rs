//! A lease as its holder sees it: shared between the engine and the guard.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tenure_core::{FencingToken, LockKey, LossReason, Timestamp, Token};
use tokio::sync::Notify;

use super::{Command, EngineStatus, Inbox, OpenRelease};
use crate::{
    clock,
    error::{Loss, NodeErrors, RenewalFailure},
};

/// Names a lease in its engine. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(pub(super) u64);

/// A lease in its engine, and what its holder sees of it.
pub(crate) type Leased = (LeaseId, Arc<LeaseCell>);

/// What the engine publishes about a lease, and what anybody may read without asking it.
#[derive(Debug)]
pub(crate) struct LeaseCell {
    key: LockKey,
    token: Token,
    number: FencingToken,
    status: Arc<EngineStatus>,
    /// The end of validity, in nanoseconds of the clock of leases; [`RAN_OUT`] once it is reported.
    deadline: AtomicU64,
    /// See [`tenure_core::LeaseState::excuse`].
    excuse: AtomicU64,
    /// The pause in which its time ran out, as it was last reported; zero when there was none.
    paused: AtomicU64,
    /// How often it was reported that its time ran out.
    ran_out: AtomicU64,
    /// Why it is finally lost.
    lost: OnceLock<LossReason>,
    changed: Notify,
    /// When the first of the renewals was sent that failed since the last one that did not, and
    /// what was said to the last.
    failing: Mutex<Option<(Timestamp, NodeErrors)>>,
}

impl LeaseCell {
    pub(super) fn new(
        key: LockKey,
        token: Token,
        number: FencingToken,
        deadline: Timestamp,
        status: Arc<EngineStatus>,
    ) -> Self {
        Self {
            key,
            token,
            number,
            status,
            deadline: AtomicU64::new(deadline.as_nanos()),
            excuse: AtomicU64::new(0),
            paused: AtomicU64::new(0),
            ran_out: AtomicU64::new(0),
            lost: OnceLock::new(),
            changed: Notify::new(),
            failing: Mutex::new(None),
        }
    }

    /// A renewal that was sent then failed.
    pub(super) fn renewal_failed(&self, sent: Timestamp, errors: NodeErrors) {
        let mut failing = self.failing();
        let since = failing.take().map_or(sent, |(since, _)| since);
        *failing = Some((since, errors));
    }

    pub(super) fn renewal_succeeded(&self) {
        *self.failing() = None;
    }

    /// Since when renewals fail, and what was said to the last one.
    pub(crate) fn renewal_failure(&self) -> Option<RenewalFailure> {
        let (since, errors) = self.failing().clone()?;
        Some(RenewalFailure { failing_for: clock::now().since(since), errors })
    }

    /// A loss of this lease, for this reason.
    pub(crate) fn lost_by(&self, reason: LossReason) -> Loss {
        Loss::new(&self.key, reason, self.renewal_failure())
    }

    pub(crate) fn ensure_held(&self) -> Result<(), Loss> {
        self.loss().map_or(Ok(()), |reason| Err(self.lost_by(reason)))
    }

    fn failing(&self) -> MutexGuard<'_, Option<(Timestamp, NodeErrors)>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn key(&self) -> &LockKey {
        &self.key
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    pub(crate) fn number(&self) -> FencingToken {
        self.number
    }

    /// What is left of the validity by the local clock; `None` once the lease is lost.
    pub(crate) fn valid_for(&self) -> Option<Duration> {
        self.loss().is_none().then(|| self.left()).filter(|left| !left.is_zero())
    }

    /// Why the lease is lost, or `None` while it is valid.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        match self.lost.get() {
            Some(reason) => Some(reason.clone()),
            None if !self.status.is_alive() => Some(LossReason::EngineStopped),
            // The engine's timer may be late; the clock is not.
            None => self.left().is_zero().then(|| self.why_over()),
        }
    }

    /// Why its time ran out, as it was reported, or as the clock shows.
    fn why_over(&self) -> LossReason {
        let deadline = self.deadline.load(Ordering::Acquire);
        if deadline == RAN_OUT {
            return self.reported_reason();
        }
        let excuse = Timestamp::from_nanos(self.excuse.load(Ordering::Acquire));
        let deadline = Timestamp::from_nanos(deadline);
        match self.status.pulse.last_pause(clock::now()) {
            Some(pause) if pause.from <= excuse && pause.to >= deadline => {
                LossReason::Paused { pause: pause.length() }
            }
            _ => LossReason::Expired,
        }
    }

    /// Why its time ran out when that was last reported.
    fn reported_reason(&self) -> LossReason {
        match self.paused.load(Ordering::Acquire) {
            0 => LossReason::Expired,
            nanos => LossReason::Paused { pause: Duration::from_nanos(nanos) },
        }
    }

    fn left(&self) -> Duration {
        Timestamp::from_nanos(self.deadline.load(Ordering::Acquire)).since(clock::now())
    }

    /// Waits until the engine says that the lease is lost.
    pub(crate) async fn lost(&self) -> LossReason {
        let ran_out = self.ran_out.load(Ordering::Acquire);
        loop {
            let changed = self.changed.notified();
            if let Some(reason) = self.loss() {
                return reason;
            }
            // It may be held again before the listener has run: it was lost nevertheless.
            if self.ran_out.load(Ordering::Acquire) != ran_out {
                return self.reported_reason();
            }
            changed.await;
        }
    }

    /// It is held until then, and a pause from `excuse` on would be why not. One that ran out is
    /// held again.
    pub(super) fn set_deadline(&self, deadline: Timestamp, excuse: Timestamp) {
        self.excuse.store(excuse.as_nanos(), Ordering::Release);
        self.deadline.store(deadline.as_nanos(), Ordering::Release);
    }

    /// The first reason stays, unless its time ran out.
    pub(crate) fn lose(&self, reason: LossReason) {
        if reason.ran_out() {
            let paused = match reason {
                LossReason::Paused { pause } => u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX),
                _ => 0,
            };
            self.paused.store(paused, Ordering::Release);
            self.deadline.store(RAN_OUT, Ordering::Release);
            self.ran_out.fetch_add(1, Ordering::AcqRel);
        } else {
            let has_run_out = self.deadline.load(Ordering::Acquire) == RAN_OUT;
            let first = if has_run_out { self.reported_reason() } else { reason };
            // Already lost: the reason that was reported first is kept.
            _ = self.lost.set(first);
        }
        self.changed.notify_waiters();
    }

    /// Its release begins.
    pub(crate) fn open_release(&self) -> OpenRelease {
        OpenRelease::begin(&self.status)
    }

    fn is_ours(&self) -> bool {
        self.status.is_ours()
    }
}

/// A lease on its way to a guard, and in it: dropping it gives the lease back.
#[derive(Debug)]
pub(crate) struct Holding {
    id: LeaseId,
    cell: Arc<LeaseCell>,
    inbox: Inbox,
    armed: bool,
}

impl Holding {
    pub(super) fn new(id: LeaseId, cell: Arc<LeaseCell>, inbox: Inbox) -> Self {
        Self { id, cell, inbox, armed: true }
    }

    pub(crate) fn id(&self) -> LeaseId {
        self.id
    }

    pub(crate) fn cell(&self) -> &Arc<LeaseCell> {
        &self.cell
    }

    /// Leaves what becomes of the lease to the command that takes it.
    pub(crate) fn disarm(&mut self) -> LeaseId {
        self.armed = false;
        self.id
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        // A forked child holds nothing, and must not release what its parent holds.
        if self.armed && self.cell.is_ours() {
            // Without an engine the key ends with its TTL.
            let open = self.cell.open_release();
            self.inbox.send(Command::Release { lease: self.id, reply: None, open });
        }
    }
}

/// The deadline of a lease whose time ran out: long past, on any machine.
const RAN_OUT: u64 = 0;

#[cfg(test)]
mod tests {
    use smol::future::{block_on, poll_once};

    use super::*;

    /// One that is valid for an hour.
    fn cell() -> LeaseCell {
        let status = EngineStatus::begin();
        let (key, token) = (LockKey::new(b"k").unwrap(), Token::new(7, &label()));
        let number = FencingToken::new(7).unwrap();
        LeaseCell::new(key, token, number, in_an_hour(), Arc::new(status))
    }

    fn label() -> tenure_core::HolderLabel {
        tenure_core::HolderLabel::new("me").unwrap()
    }

    fn in_an_hour() -> Timestamp {
        clock::now() + Duration::from_secs(3_600)
    }

    #[test]
    fn an_expired_lease_may_be_held_again() {
        let cell = cell();
        assert!(cell.valid_for().is_some());
        cell.lose(LossReason::Expired);
        assert_eq!((cell.valid_for(), cell.loss()), (None, Some(LossReason::Expired)));
        cell.set_deadline(in_an_hour(), Timestamp::default());
        assert_eq!(cell.loss(), None);
        assert!(cell.valid_for().is_some());
        assert!(block_on(poll_once(cell.lost())).is_none(), "the next loss is another");
    }

    #[test]
    fn an_undone_lease_notifies_callers_that_await_the_loss() {
        let cell = cell();
        let mut lost = std::pin::pin!(cell.lost());
        assert!(block_on(poll_once(lost.as_mut())).is_none());
        cell.lose(LossReason::Expired);
        cell.set_deadline(in_an_hour(), Timestamp::default());
        assert_eq!(block_on(poll_once(lost)), Some(LossReason::Expired));
    }

    #[test]
    fn a_final_loss_keeps_its_first_reason() {
        let paused = LossReason::Paused { pause: Duration::from_secs(5) };
        for (reasons, first) in [
            ([paused.clone(), LossReason::Released], paused),
            ([LossReason::Gone, LossReason::Released], LossReason::Gone),
            ([LossReason::Expired, LossReason::Released], LossReason::Expired),
            ([LossReason::Released, LossReason::Expired], LossReason::Released),
        ] {
            let cell = cell();
            reasons.into_iter().for_each(|reason| cell.lose(reason));
            cell.set_deadline(in_an_hour(), Timestamp::default());
            assert_eq!((cell.loss(), cell.valid_for()), (Some(first), None));
        }
    }
}
