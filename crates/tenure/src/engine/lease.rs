//! A lease as its holder sees it: shared between the engine and the guard.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tenure_core::{FencingToken, LockKey, LossReason, Timestamp, Token};
use tokio::sync::{Notify, mpsc};

use super::{Command, Life};
use crate::{
    clock,
    error::{NodeErrors, RenewalFailure},
};

/// Names a lease in its engine. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseId(pub(super) u64);

/// What the engine tells about a lease, and what anybody may read without asking it.
#[derive(Debug)]
pub(crate) struct LeaseCell {
    key: LockKey,
    token: Token,
    number: FencingToken,
    life: Arc<Life>,
    /// The end of validity, in nanoseconds of the clock of leases; [`RAN_OUT`] once it is told.
    deadline: AtomicU64,
    /// How often it was told that its time ran out.
    ran_out: AtomicU64,
    /// Why it is lost for good.
    lost: OnceLock<LossReason>,
    told: Notify,
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
        life: Arc<Life>,
    ) -> Self {
        Self {
            key,
            token,
            number,
            life,
            deadline: AtomicU64::new(deadline.as_nanos()),
            ran_out: AtomicU64::new(0),
            lost: OnceLock::new(),
            told: Notify::new(),
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
            None if !self.life.is_alive() => Some(LossReason::EngineStopped),
            // The engine's timer may be late; the clock is not.
            None => self.left().is_zero().then_some(LossReason::Expired),
        }
    }

    fn left(&self) -> Duration {
        Timestamp::from_nanos(self.deadline.load(Ordering::Acquire)).since(clock::now())
    }

    /// Waits until the engine says that the lease is lost.
    pub(crate) async fn lost(&self) -> LossReason {
        let ran_out = self.ran_out.load(Ordering::Acquire);
        loop {
            let told = self.told.notified();
            if let Some(reason) = self.loss() {
                return reason;
            }
            // It may be held again before the one who waits has run: it was lost all the same.
            if self.ran_out.load(Ordering::Acquire) != ran_out {
                return LossReason::Expired;
            }
            told.await;
        }
    }

    /// It is held until then. One that ran out is held again.
    pub(super) fn set_deadline(&self, deadline: Timestamp) {
        self.deadline.store(deadline.as_nanos(), Ordering::Release);
    }

    /// The first reason stays: for good, unless its time ran out.
    pub(crate) fn lose(&self, reason: LossReason) {
        if reason == LossReason::Expired {
            self.deadline.store(RAN_OUT, Ordering::Release);
            self.ran_out.fetch_add(1, Ordering::AcqRel);
        } else {
            let has_run_out = self.deadline.load(Ordering::Acquire) == RAN_OUT;
            let first = if has_run_out { LossReason::Expired } else { reason };
            // Already lost: the reason that was told first is kept.
            _ = self.lost.set(first);
        }
        self.told.notify_waiters();
    }

    fn is_ours(&self) -> bool {
        self.life.is_ours()
    }
}

/// A lease on its way to a guard, and in it: dropping it gives the lease back.
#[derive(Debug)]
pub(crate) struct Holding {
    id: LeaseId,
    cell: Arc<LeaseCell>,
    inbox: mpsc::UnboundedSender<Command>,
    armed: bool,
}

impl Holding {
    pub(super) fn new(
        id: LeaseId,
        cell: Arc<LeaseCell>,
        inbox: mpsc::UnboundedSender<Command>,
    ) -> Self {
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
        // A forked child holds nothing, and must not give back what its parent holds.
        if self.armed && self.cell.is_ours() {
            // Without an engine the key ends with its TTL.
            _ = self.inbox.send(Command::Release { lease: self.id, reply: None });
        }
    }
}

/// The deadline of a lease whose time ran out: long past, on any machine.
const RAN_OUT: u64 = 0;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use smol::future::{block_on, poll_once};

    use super::*;

    /// One that is valid for an hour.
    fn cell() -> LeaseCell {
        let life = Life { alive: AtomicBool::new(true), process: std::process::id() };
        let (key, token) = (LockKey::new(b"k").unwrap(), Token::new(7, &label()));
        let number = FencingToken::new(7).unwrap();
        LeaseCell::new(key, token, number, in_an_hour(), Arc::new(life))
    }

    fn label() -> tenure_core::HolderLabel {
        tenure_core::HolderLabel::new("me").unwrap()
    }

    fn in_an_hour() -> Timestamp {
        clock::now() + Duration::from_secs(3_600)
    }

    #[test]
    fn one_that_ran_out_may_be_held_again() {
        let cell = cell();
        assert!(cell.valid_for().is_some());
        cell.lose(LossReason::Expired);
        assert_eq!((cell.valid_for(), cell.loss()), (None, Some(LossReason::Expired)));
        cell.set_deadline(in_an_hour());
        assert_eq!(cell.loss(), None);
        assert!(cell.valid_for().is_some());
        assert!(block_on(poll_once(cell.lost())).is_none(), "the next loss is another");
    }

    #[test]
    fn who_waits_for_the_loss_is_told_of_one_that_was_undone() {
        let cell = cell();
        let mut lost = std::pin::pin!(cell.lost());
        assert!(block_on(poll_once(lost.as_mut())).is_none());
        cell.lose(LossReason::Expired);
        cell.set_deadline(in_an_hour());
        assert_eq!(block_on(poll_once(lost)), Some(LossReason::Expired));
    }

    #[test]
    fn one_that_is_lost_for_good_stays_so_for_the_first_reason() {
        for (reasons, first) in [
            ([LossReason::Gone, LossReason::Released], LossReason::Gone),
            ([LossReason::Expired, LossReason::Released], LossReason::Expired),
            ([LossReason::Released, LossReason::Expired], LossReason::Released),
        ] {
            let cell = cell();
            reasons.into_iter().for_each(|reason| cell.lose(reason));
            cell.set_deadline(in_an_hour());
            assert_eq!((cell.loss(), cell.valid_for()), (Some(first), None));
        }
    }
}
