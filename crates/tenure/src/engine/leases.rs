//! Leases that are held: when to renew which, where it has its key, and whether it is lost.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    num::NonZeroU32,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use tenure_core::{
    LeaseState, LockKey, LossReason, NodeId, RenewRequest, RenewalAnswer, Timestamp, Token, Ttl,
};
use tokio::sync::Notify;

use super::{
    command::AcquireRequest,
    lease::{LeaseCell, LeaseId},
    majority::{KeyState, QuorumResult},
    placement::Placement,
};
use crate::{
    clock::{self, Pulse},
    error::NodeError,
    event::{self, Class},
    node::Watch,
    random,
};

/// The leases that this client holds.
#[derive(Debug)]
pub(super) struct Leases {
    pulse: Arc<Pulse>,
    entries: RefCell<HashMap<LeaseId, LeaseEntry>>,
    /// When to look at which, earliest first.
    due: RefCell<BTreeSet<(Timestamp, LeaseId)>>,
    /// What the renewals' task sleeps until.
    sleeping_until: Cell<Timestamp>,
    sooner: Notify,
}

/// One lease. Dropping it notifies its holder that it is not renewed any more.
#[derive(Debug)]
pub(super) struct LeaseEntry {
    pub(super) lease: LeaseState,
    pub(super) cell: Arc<LeaseCell>,
    pub(super) class: Class,
    pub(super) granted: Timestamp,
    /// Where it has its key.
    pub(super) placement: Placement,
    /// Nodes that have lost the key are given it again.
    repair: bool,
    pub(super) yield_to_pollers: Option<NonZeroU32>,
    /// Nobody takes the lock with a longer TTL.
    max_ttl: Ttl,
    due: Timestamp,
    /// Dropped when its key is not to be watched any more.
    watch: Option<Rc<Watch>>,
}

impl LeaseEntry {
    /// Ends it because its holder gave it up.
    pub(super) fn settle(self) {
        self.cell.lose(LossReason::Released);
    }
}

impl Drop for LeaseEntry {
    fn drop(&mut self) {
        self.cell.lose(LossReason::EngineStopped);
    }
}

impl Leases {
    pub(super) fn new(pulse: Arc<Pulse>) -> Self {
        Self {
            pulse,
            entries: RefCell::default(),
            due: RefCell::default(),
            sleeping_until: Cell::default(),
            sooner: Notify::new(),
        }
    }

    pub(super) fn insert(
        &self,
        id: LeaseId,
        sent: Timestamp,
        request: &AcquireRequest,
        cell: Arc<LeaseCell>,
        placement: Placement,
    ) {
        let AcquireRequest { settings, class, repair, yield_to_pollers, max_ttl, .. } = request;
        let lease = LeaseState::new(sent, *settings);
        cell.set_deadline(lease.deadline(), lease.excuse());
        let due = lease.poll_timeout();
        let entry = LeaseEntry {
            lease,
            cell,
            class: class.clone(),
            granted: sent,
            placement,
            repair: *repair,
            yield_to_pollers: *yield_to_pollers,
            max_ttl: *max_ttl,
            due,
            watch: None,
        };
        self.entries.borrow_mut().insert(id, entry);
        self.schedule(due, id);
    }

    pub(super) fn remove(&self, id: LeaseId) -> Option<LeaseEntry> {
        let entry = self.entries.borrow_mut().remove(&id)?;
        self.due.borrow_mut().remove(&(entry.due, id));
        Some(entry)
    }

    /// Ends a lease whose holder has taken it over.
    pub(super) fn settle(&self, id: LeaseId) {
        if let Some(entry) = self.remove(id) {
            entry.settle();
        }
    }

    /// Ends all of them.
    pub(super) fn clear(&self) {
        self.due.borrow_mut().clear();
        self.entries.borrow_mut().clear();
    }

    fn schedule(&self, due: Timestamp, id: LeaseId) {
        if due != Timestamp::MAX {
            self.due.borrow_mut().insert((due, id));
        }
        if due < self.sleeping_until.get() {
            self.sooner.notify_one();
        }
    }

    /// Changes a lease, and notifies its holder. `None` when it is not held any more.
    fn update<T>(&self, id: LeaseId, change: impl FnOnce(&mut LeaseState) -> T) -> Option<T> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(&id)?;
        let was_lost = entry.lease.lost().is_some();
        if let Some(pause) = self.pulse.last_pause(clock::now()) {
            entry.lease.handle_pause(pause);
        }
        let result = change(&mut entry.lease);
        match entry.lease.lost() {
            Some(_) if was_lost => {}
            Some(reason) => {
                event::lost(entry.cell.key(), &entry.class, reason);
                entry.cell.lose(reason.clone());
                entry.watch = None;
            }
            None => {
                if was_lost {
                    event::held_again(entry.cell.key(), &entry.class);
                }
                entry.cell.set_deadline(entry.lease.deadline(), entry.lease.excuse());
            }
        }
        let due = entry.lease.poll_timeout();
        let was = std::mem::replace(&mut entry.due, due);
        drop(entries);
        if due != was {
            self.due.borrow_mut().remove(&(was, id));
            self.schedule(due, id);
        }
        Some(result)
    }

    /// What to renew now: what is due, and what is due so soon that it may go along.
    pub(super) fn take_due(&self, now: Timestamp) -> Vec<(LeaseId, RenewRequest)> {
        let mut due = self.due.borrow_mut();
        if due.first().is_none_or(|(first, _)| *first > now) {
            return Vec::new();
        }
        let later = due.split_off(&(now + MAX_AHEAD, LeaseId(0)));
        let look_at = std::mem::replace(&mut *due, later);
        drop(due);
        let mut renewals = Vec::new();
        for (was, id) in look_at {
            self.due.borrow_mut().insert((was, id));
            let wanted = self.update(id, |lease| {
                let ahead = (lease.ttl().validity() / GO_ALONG).min(MAX_AHEAD);
                lease.poll_renewal(now, ahead).then(|| lease.ttl())
            });
            if let Some(Some(ttl)) = wanted
                && let Some(renewal) = self.renewal(id, ttl)
            {
                renewals.push((id, renewal));
            }
        }
        renewals
    }

    /// Has the key of a lease that is held watched, or not any more.
    pub(super) fn watch(
        &self,
        id: LeaseId,
        watch: impl FnOnce(LockKey, Token) -> Option<Rc<Watch>>,
    ) {
        if let Some(entry) = self.entries.borrow_mut().get_mut(&id)
            && entry.lease.lost().is_none()
        {
            entry.watch = watch(entry.cell.key().clone(), entry.cell.token().clone());
        }
    }

    pub(super) fn renewal(&self, id: LeaseId, ttl: Ttl) -> Option<RenewRequest> {
        let entries = self.entries.borrow();
        let cell = &entries.get(&id)?.cell;
        Some(RenewRequest { key: cell.key().clone(), token: cell.token().clone(), ttl })
    }

    /// Changes what is known of a lease's keys; `None` when it was released.
    pub(super) fn with_placement<T>(
        &self,
        id: LeaseId,
        change: impl FnOnce(&mut Placement) -> T,
    ) -> Option<T> {
        self.entries.borrow_mut().get_mut(&id).map(|entry| change(&mut entry.placement))
    }

    /// Why a lease is lost that was not released.
    pub(super) fn lost(&self, id: LeaseId) -> Option<LossReason> {
        self.entries.borrow().get(&id)?.lease.lost().cloned()
    }

    /// Why a lease is lost, and stays so whatever the nodes say; `None` for one whose time ran out.
    pub(super) fn final_loss(&self, id: LeaseId) -> Option<LossReason> {
        let now = clock::now();
        // Listeners for the loss are notified before it may be undone.
        let over = self.update(id, |lease| {
            lease.handle_time(now);
            lease.final_loss(now)
        });
        over.unwrap_or(Some(LossReason::Released))
    }

    /// The TTL that renewals of a lease ask for.
    pub(super) fn ttl(&self, id: LeaseId) -> Option<Ttl> {
        self.entries.borrow().get(&id).map(|entry| entry.lease.ttl())
    }

    /// The longest TTL that anybody takes its lock with.
    pub(super) fn max_ttl(&self, id: LeaseId) -> Option<Ttl> {
        self.entries.borrow().get(&id).map(|entry| entry.max_ttl)
    }

    /// The cell of a lease that is held.
    pub(super) fn held(&self, id: LeaseId) -> Option<Arc<LeaseCell>> {
        let entries = self.entries.borrow();
        entries
            .get(&id)
            .filter(|entry| entry.lease.lost().is_none())
            .map(|entry| Arc::clone(&entry.cell))
    }

    /// Whether nodes that have lost a lease's key are given it again.
    pub(super) fn is_topped_up(&self, id: LeaseId) -> bool {
        self.entries.borrow().get(&id).is_some_and(|entry| entry.repair)
    }

    /// When the first of them is due; the caller sleeps until then, unless it is notified before.
    pub(super) fn next(&self) -> Timestamp {
        let next = self.due.borrow().first().map_or(Timestamp::MAX, |(due, _)| *due);
        self.sleeping_until.set(next);
        next
    }

    /// Resolves when one is due sooner than that.
    pub(super) async fn sooner(&self) {
        self.sooner.notified().await;
    }

    /// Takes one node's answer to a renewal, and says what it counts for; `None` when the lease was
    /// released.
    pub(super) fn counted(
        &self,
        id: LeaseId,
        node: NodeId,
        answer: &Result<RenewalAnswer, NodeError>,
    ) -> Option<KeyState> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(&id)?;
        if let Err(error) = answer {
            event::renewal_failed(entry.cell.key(), &entry.class, error);
        }
        let now = clock::now();
        let has_run_out = entry.lease.lost().is_some() || now >= entry.lease.deadline();
        entry.placement.renewed(now, node, answer, has_run_out)
    }

    /// A majority had the key at `sent`, and all the time before.
    pub(super) fn prove(&self, id: LeaseId, sent: Timestamp) {
        let now = clock::now();
        self.with_placement(id, |placement| placement.prove(sent));
        self.update(id, |lease| lease.handle_time(now));
        self.update(id, |lease| lease.handle_proved(now, sent));
    }

    /// Hands in what the nodes' answers come to, to a renewal that was queued at `sent`, or to an
    /// extension by the holder to this TTL.
    pub(super) fn answer(
        &self,
        id: LeaseId,
        sent: Timestamp,
        extended: Option<Ttl>,
        result: &QuorumResult,
    ) {
        let now = clock::now();
        if let Some(entry) = self.entries.borrow().get(&id) {
            match result {
                QuorumResult::Indeterminate(errors) => {
                    entry.cell.renewal_failed(sent, errors.clone());
                }
                _ => entry.cell.renewal_succeeded(),
            }
        }
        if matches!(result, QuorumResult::Ours) {
            self.with_placement(id, |placement| placement.prove(sent));
        }
        self.update(id, |lease| match result {
            QuorumResult::Ours => match extended {
                Some(ttl) => lease.handle_extended(now, sent, ttl),
                None => lease.handle_renewed(now, sent),
            },
            QuorumResult::Gone | QuorumResult::GivenUp => lease.lose(LossReason::Gone),
            QuorumResult::Other(holder) => lease.lose(LossReason::Taken { holder: holder.clone() }),
            QuorumResult::Indeterminate(_) => lease.handle_unknown(now, random::jitter()),
        });
    }
}

/// A renewal goes along with others when it is due within 1/36 of the validity, a twelfth of the
/// time between two of them: so batching makes at most 9 % more renewals.
const GO_ALONG: u32 = 36;

/// No renewal is looked at earlier than this.
const MAX_AHEAD: Duration = Duration::from_millis(100);
