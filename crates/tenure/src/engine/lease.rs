//! A lease as its holder sees it: shared between the engine and the guard.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tenure_core::{FencingToken, LockKey, LossReason, Timestamp, Token};
use tokio::sync::{Notify, mpsc};

use super::{Command, Life};
use crate::clock;

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
    /// The end of validity, in nanoseconds of the clock of leases.
    deadline: AtomicU64,
    lost: OnceLock<LossReason>,
    told: Notify,
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
            lost: OnceLock::new(),
            told: Notify::new(),
        }
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
        loop {
            let told = self.told.notified();
            if let Some(reason) = self.loss() {
                return reason;
            }
            told.await;
        }
    }

    pub(super) fn set_deadline(&self, deadline: Timestamp) {
        self.deadline.store(deadline.as_nanos(), Ordering::Release);
    }

    /// The first reason stays.
    pub(crate) fn lose(&self, reason: LossReason) {
        // Already lost: the reason that was told first is kept.
        _ = self.lost.set(reason);
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
