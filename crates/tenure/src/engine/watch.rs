//! Watching leases that are held for long: changes of their keys by others are reported at once.
//!
//! Only where one node decides. Where several do, the next renewal notices the change.

use std::{cell::RefCell, collections::VecDeque, rc::Rc, time::Duration};

use tenure_core::{NodeId, RenewalAnswer, Timestamp, Ttl};
use tokio::sync::Notify;

use super::{lease::LeaseId, majority::QuorumResult, state::State};
use crate::{
    clock,
    node::{Watch, Watched},
    task,
};

/// Leases that are not tracked yet, in the order of their grants.
#[derive(Debug, Default)]
pub(super) struct TrackQueue {
    until: RefCell<VecDeque<(Timestamp, LeaseId)>>,
    first: Notify,
}

impl TrackQueue {
    /// A lease was granted just now.
    pub(super) fn add(&self, id: LeaseId, ttl: Ttl) {
        // Renewals of shorter ones are as quick to notice.
        if ttl.get() < MIN_TTL {
            return;
        }
        let mut until = self.until.borrow_mut();
        if until.is_empty() {
            self.first.notify_one();
        }
        until.push_back((clock::now() + YOUTH, id));
    }

    /// When the first is to be looked at, if there is any.
    fn next(&self) -> Option<Timestamp> {
        self.until.borrow().front().map(|(until, _)| *until)
    }

    fn pop_due(&self, now: Timestamp) -> Option<LeaseId> {
        let mut until = self.until.borrow_mut();
        let (first, id) = *until.front()?;
        (first <= now).then(|| until.pop_front()).map(|_| id)
    }
}

impl State {
    /// Has leases watched that are still held after their youth, for as long as the engine runs.
    pub(super) async fn run_watches(self: Rc<Self>) {
        loop {
            let Some(next) = self.to_track.next() else {
                self.to_track.first.notified().await;
                continue;
            };
            // Many at once: most leases are released long before.
            self.timers.sleep_until(next.max(clock::now() + MIN_PAUSE)).await;
            while let Some(id) = self.to_track.pop_due(clock::now()) {
                self.watch(id);
            }
        }
    }

    /// Has a lease watched that was granted, or is held again, when it has been held for a while.
    pub(super) fn watch_later(&self, id: LeaseId) {
        if self.nodes.sole().is_some()
            && let Some(ttl) = self.leases.ttl(id)
        {
            self.to_track.add(id, ttl);
        }
    }

    fn watch(self: &Rc<Self>, id: LeaseId) {
        let state = Rc::downgrade(self);
        let check = move || {
            if let Some(state) = state.upgrade() {
                task::spawn(state.check(id));
            }
        };
        self.leases.watch(id, |key, token| {
            let watch = Watch::new(key, Some(token), check);
            (self.nodes.first().watch(&watch) == Watched::Yes).then_some(watch)
        });
    }

    /// Looks whether a lease still has its key. It gets no longer by that: one that its holder
    /// renews by hand ends when it ends.
    async fn check(self: Rc<Self>, id: LeaseId) {
        let Some(renewal) = self.leases.renewal(id, Ttl::MIN_TTL) else { return };
        match self
            .ask_renewals(NodeId(0), &[(id, renewal)])
            .await
            .as_ref()
            .map(|(answers, _)| answers.as_slice())
        {
            Ok([RenewalAnswer::Gone]) => {
                self.leases.answer(id, clock::now(), None, &QuorumResult::Gone);
            }
            Ok([RenewalAnswer::Other(holder)]) => {
                let result = QuorumResult::Other(holder.clone());
                self.leases.answer(id, clock::now(), None, &result);
            }
            Ok([RenewalAnswer::Renewed]) => self.watch(id),
            // It is unknown now; the next renewal will show it.
            _ => {}
        }
    }
}

/// Most holds are over by then.
const YOUTH: Duration = Duration::from_millis(250);

/// A third of it is the time between two renewals.
const MIN_TTL: Duration = Duration::from_secs(1);

/// A client with many short leases is not woken for each of them.
const MIN_PAUSE: Duration = Duration::from_millis(20);
