//! Leases that are held: renewing them in the background, and telling when one is lost.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use tenure_core::{
    Lease, LockKey, LossReason, Op, Renewal, RenewalAnswer, Reply, Timestamp, Token, Ttl,
};
use tokio::sync::Notify;

use super::{
    command::AcquireRequest,
    lease::{LeaseCell, LeaseId},
    state::{State, command_limit},
};
use crate::{
    clock,
    error::{ExtendError, NodeError, NodeErrorKind},
    event::{self, Class},
    node::{self, Standing, Watch},
    random, task,
};

/// The leases that this client holds.
#[derive(Debug, Default)]
pub(super) struct Leases {
    entries: RefCell<HashMap<LeaseId, Entry>>,
    /// When to look at which, earliest first.
    due: RefCell<BTreeSet<(Timestamp, LeaseId)>>,
    /// What the renewals' task sleeps until.
    sleeping_until: Cell<Timestamp>,
    sooner: Notify,
}

/// One lease. Dropping it tells its holder that nobody looks after it any more.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) lease: Lease,
    pub(super) cell: Arc<LeaseCell>,
    pub(super) class: Class,
    pub(super) granted: Timestamp,
    /// What of its wait may still be on the node.
    pub(super) standing: Standing,
    pub(super) let_others_in: Option<NonZeroU32>,
    due: Timestamp,
    /// Dropped when its key is not to be watched any more.
    watch: Option<Rc<Watch>>,
}

impl Entry {
    /// Ends it because its holder gave it up.
    pub(super) fn settle(self) {
        self.cell.lose(LossReason::Released);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.cell.lose(LossReason::EngineStopped);
    }
}

impl Leases {
    pub(super) fn insert(
        &self,
        id: LeaseId,
        sent: Timestamp,
        request: &AcquireRequest,
        cell: Arc<LeaseCell>,
        standing: Standing,
    ) {
        let AcquireRequest { settings, class, let_others_in, .. } = request;
        let lease = Lease::new(sent, *settings);
        let due = lease.poll_timeout();
        let entry = Entry {
            lease,
            cell,
            class: class.clone(),
            granted: sent,
            standing,
            let_others_in: *let_others_in,
            due,
            watch: None,
        };
        self.entries.borrow_mut().insert(id, entry);
        self.schedule(due, id);
    }

    pub(super) fn remove(&self, id: LeaseId) -> Option<Entry> {
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

    /// Changes a lease, and tells its holder what that means. `None` when it is held no more.
    fn update<T>(&self, id: LeaseId, change: impl FnOnce(&mut Lease) -> T) -> Option<T> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(&id)?;
        let result = change(&mut entry.lease);
        entry.cell.set_deadline(entry.lease.deadline());
        if let Some(reason) = entry.lease.lost()
            && entry.due != Timestamp::MAX
        {
            event::lost(entry.cell.key(), &entry.class, reason);
            entry.cell.lose(reason.clone());
            entry.watch = None;
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
    fn take_due(&self, now: Timestamp) -> Vec<(LeaseId, Renewal)> {
        let mut due = self.due.borrow_mut();
        if due.first().is_none_or(|(first, _)| *first > now) {
            return Vec::new();
        }
        let later = due.split_off(&(now + LONGEST_AHEAD, LeaseId(0)));
        let look_at = std::mem::replace(&mut *due, later);
        drop(due);
        let mut renewals = Vec::new();
        for (was, id) in look_at {
            self.due.borrow_mut().insert((was, id));
            let wanted = self.update(id, |lease| {
                let ahead = (lease.ttl().validity() / GO_ALONG).min(LONGEST_AHEAD);
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

    pub(super) fn renewal(&self, id: LeaseId, ttl: Ttl) -> Option<Renewal> {
        let entries = self.entries.borrow();
        let cell = &entries.get(&id)?.cell;
        Some(Renewal { key: cell.key().clone(), token: cell.token().clone(), ttl })
    }

    /// Hands in one answer to a request that was queued at `sent`.
    pub(super) fn answer(
        &self,
        id: LeaseId,
        sent: Timestamp,
        ttl: Ttl,
        answer: &Result<RenewalAnswer, NodeError>,
    ) {
        let now = clock::now();
        if let Err(error) = answer
            && let Some(entry) = self.entries.borrow().get(&id)
        {
            event::renewal_failed(entry.cell.key(), &entry.class, error);
        }
        self.update(id, |lease| match answer {
            Ok(RenewalAnswer::Renewed) => lease.handle_renewed(now, sent, ttl),
            Ok(RenewalAnswer::Gone) => lease.lose(LossReason::Gone),
            Ok(RenewalAnswer::Other(holder)) => {
                lease.lose(LossReason::Taken { holder: holder.clone() });
            }
            Ok(RenewalAnswer::Refused(_)) | Err(_) => lease.handle_unknown(now, random::jitter()),
        });
    }
}

impl State {
    /// Renews and tells losses, for as long as the engine runs.
    pub(super) async fn run_renewals(self: Rc<Self>) {
        loop {
            let next = self.leases.due.borrow().first().map_or(Timestamp::MAX, |(due, _)| *due);
            self.leases.sleeping_until.set(next);
            tokio::select! {
                () = self.timers.sleep_until(next) => {}
                () = self.leases.sooner.notified() => continue,
            }
            let mut renewals = self.leases.take_due(clock::now());
            while !renewals.is_empty() {
                let rest = renewals.split_off(renewals.len().min(MOST_IN_A_BATCH));
                task::spawn(Rc::clone(&self).renew(std::mem::replace(&mut renewals, rest)));
                // Others' ops go between the batches.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Renews a batch. One that the user may not touch must not harm the others: then by halves.
    fn renew(self: Rc<Self>, batch: Vec<(LeaseId, Renewal)>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            let sent = clock::now();
            match self.ask_renewals(&batch).await {
                Err(error) if error.kind() == NodeErrorKind::NoPermission && batch.len() > 1 => {
                    let mut first = batch;
                    let second = first.split_off(first.len() / 2);
                    task::spawn(Rc::clone(&self).renew(first));
                    task::spawn(Rc::clone(&self).renew(second));
                }
                Err(error) => {
                    for (id, renewal) in &batch {
                        self.leases.answer(*id, sent, renewal.ttl, &Err(error.clone()));
                    }
                }
                Ok(answers) => {
                    for ((id, renewal), answer) in batch.iter().zip(answers) {
                        let answer = match answer {
                            RenewalAnswer::Refused(words) => {
                                Err(node::refusal(self.node.name(), &words))
                            }
                            answer => Ok(answer),
                        };
                        self.leases.answer(*id, sent, renewal.ttl, &answer);
                    }
                }
            }
        })
    }

    /// Extends a lease for its holder, once.
    pub(super) async fn extended(&self, id: LeaseId, ttl: Ttl) -> Result<(), ExtendError> {
        let lost = || self.leases.entries.borrow().get(&id)?.lease.lost().cloned();
        if let Some(reason) = lost() {
            return Err(ExtendError::NotHeld(reason));
        }
        let renewal = self.leases.renewal(id, ttl);
        let renewal = renewal.ok_or(ExtendError::NotHeld(LossReason::Released))?;
        let sent = clock::now();
        let mut answers =
            self.ask_renewals(&[(id, renewal)]).await.map_err(ExtendError::Unconfirmed)?;
        match answers.pop() {
            Some(RenewalAnswer::Refused(words)) => {
                Err(ExtendError::Unconfirmed(node::refusal(self.node.name(), &words)))
            }
            Some(answer) => {
                self.leases.answer(id, sent, ttl, &Ok(answer));
                lost().map_or(Ok(()), |reason| Err(ExtendError::NotHeld(reason)))
            }
            None => Err(ExtendError::EngineStopped),
        }
    }

    pub(super) async fn ask_renewals(
        &self,
        batch: &[(LeaseId, Renewal)],
    ) -> Result<Vec<RenewalAnswer>, NodeError> {
        let shortest = batch.iter().map(|(_, renewal)| renewal.ttl).min();
        let limit = command_limit(shortest.map_or(Duration::MAX, Ttl::get));
        let renewals = batch.iter().map(|(_, renewal)| renewal.clone()).collect();
        match self.node.call(Op::Renew(renewals), limit).await? {
            Reply::Renewed(answers) => Ok(answers),
            _ => Err(NodeError::new(self.node.name(), NodeErrorKind::Protocol)),
        }
    }
}

/// Two keys each: a script over 256 keys holds up a server for about 0.4 ms.
const MOST_IN_A_BATCH: usize = 128;

/// A renewal goes along with others when it is due within 1/36 of the validity, a twelfth of the
/// time between two of them: so batching makes at most 9 % more renewals.
const GO_ALONG: u32 = 36;

/// No renewal is looked at earlier than this.
const LONGEST_AHEAD: Duration = Duration::from_millis(100);
