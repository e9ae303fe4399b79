//! Callers that wait, as nodes see them: where their messages go, and their places in queues.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::{Rc, Weak},
};

use tenure_core::{Channel, Entry, Notification, Op, Place, Ticket, Token, Ttl};
use tokio::sync::Notify;

use super::release_listener::ReleaseListeners;

/// What a waiter is notified of between its tries.
#[derive(Debug)]
pub(crate) enum WaiterEvent {
    /// Poll at once: the lock was set for it, or it may have missed that.
    Acquire,
    /// The lock was set for another, for a provisional grant; this one becomes the successor watch.
    SuccessorWatch { grant_ttl_ms: u64, granted: Channel },
}

/// One acquisition that waits, under one token.
#[derive(Debug)]
pub(crate) struct QueueWaiter {
    token: Token,
    grant_ttl: Ttl,
    /// How it stands, or stood, in the queue: one entry for each of the last connections it asked
    /// over. Each acquisition takes the entry of the one before it out of the queue.
    entries: RefCell<Vec<Entry>>,
    /// An op under its token was sent over a connection that ended before the answer: it may be
    /// applied at any later time.
    ambiguous: Cell<bool>,
    event: RefCell<Option<WaiterEvent>>,
    changed: Notify,
}

impl QueueWaiter {
    /// One that gets this short TTL until it confirms.
    pub(crate) fn new(token: Token, grant_ttl: Ttl) -> Rc<Self> {
        Rc::new(Self {
            token,
            grant_ttl,
            entries: RefCell::default(),
            ambiguous: Cell::new(false),
            event: RefCell::default(),
            changed: Notify::new(),
        })
    }

    /// What it brings along to a try over the connection that listens to `channel`.
    pub(super) fn place(&self, channel: &Channel, context: &RetryContext) -> Place {
        let entry = Entry { channel: channel.clone(), grant_ttl: self.grant_ttl };
        let mut entries = self.entries.borrow_mut();
        let previous = entries.last().filter(|last| **last != entry).cloned();
        if entries.last() != Some(&entry) {
            if entries.len() == MAX_ENTRIES {
                entries.remove(0);
            }
            // One, as a rule, and there are many waiters.
            entries.reserve_exact(1);
            entries.push(entry.clone());
        }
        let RetryContext { ticket, suspect } = context.clone();
        Place { entry, ticket, previous, suspect }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Whether it may be in a queue.
    pub(crate) fn is_queued(&self) -> bool {
        !self.entries.borrow().is_empty()
    }

    /// Every trace of it that may be on a node, for its release.
    pub(crate) fn residue(&self) -> Residue {
        Residue { entries: self.entries.borrow().clone(), ambiguous: self.ambiguous.get() }
    }

    /// The same, once it holds the lock: a grant takes its entry out of the queue, so there is
    /// nothing but what a dead connection may still bring.
    pub(crate) fn residue_as_holder(&self) -> Residue {
        if self.ambiguous.get() { self.residue() } else { Residue::default() }
    }

    pub(crate) fn set_ambiguous(&self) {
        self.ambiguous.set(true);
    }

    /// Waits for an event; a grant outdoes everything that came before it.
    pub(crate) async fn event(&self) -> WaiterEvent {
        loop {
            let changed = self.changed.notified();
            if let Some(event) = self.event.take() {
                return event;
            }
            changed.await;
        }
    }

    /// Its place in the queue, if it has one.
    pub(crate) fn entry(&self) -> Option<Entry> {
        self.entries.borrow().last().cloned()
    }

    pub(crate) fn notify(&self, event: WaiterEvent) {
        let mut slot = self.event.borrow_mut();
        if !matches!(
            (&*slot, &event),
            (Some(WaiterEvent::Acquire), WaiterEvent::SuccessorWatch { .. })
        ) {
            *slot = Some(event);
        }
        self.changed.notify_one();
    }
}

/// What may be on a node under a token, beside the lock itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Residue {
    /// The places that it may have in the queue.
    pub(crate) entries: Vec<Entry>,
    /// A command under it may still arrive, over a connection that ended: it must do nothing.
    pub(crate) ambiguous: bool,
}

/// What a waiter knows when it tries.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryContext {
    pub(crate) ticket: Option<Ticket>,
    pub(crate) suspect: Option<Channel>,
}

/// The waiters of one node: by their tokens, and those without a queue.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    pub(super) listeners: ReleaseListeners,
    by_token: RefCell<HashMap<Token, Weak<QueueWaiter>>>,
    sweep_at: Cell<usize>,
}

impl Waiters {
    /// Notifies this one from now on, for as long as it lives.
    pub(super) fn add(&self, waiter: &Rc<QueueWaiter>) {
        let mut by_token = self.by_token.borrow_mut();
        if by_token.len() >= self.sweep_at.get().max(MIN_SWEEP) {
            by_token.retain(|_, waiter| waiter.strong_count() > 0);
            self.sweep_at.set(2 * by_token.len());
        }
        by_token.entry(waiter.token.clone()).or_insert_with(|| Rc::downgrade(waiter));
    }

    /// The same, and puts its place into the op: of a node with one channel for all time.
    pub(super) fn give_place(
        &self,
        op: &mut Op,
        waiter: &Rc<QueueWaiter>,
        channel: &Channel,
        context: &RetryContext,
    ) {
        self.add(waiter);
        if let Op::Acquire { place, .. } = op {
            *place = Some(waiter.place(channel, context));
        }
    }

    /// Delivers a message. One to a waiter that is gone is too late: its cancellation follows.
    pub(super) fn deliver(&self, wake: Notification) {
        let (token, event) = match wake {
            Notification::Grant { token, .. } => (token, WaiterEvent::Acquire),
            Notification::SuccessorWatch { token, grant_ttl_ms, granted, .. } => {
                (token, WaiterEvent::SuccessorWatch { grant_ttl_ms, granted })
            }
            Notification::Free { to } => return self.listeners.notify(to.as_bytes()),
        };
        let waiter = self.by_token.borrow().get(&*token).and_then(Weak::upgrade);
        if let Some(waiter) = waiter {
            waiter.notify(event);
        }
    }

    /// Wakes every waiter to try again at once: messages may have been missed.
    pub(super) fn wake_all(&self) {
        let waiters: Vec<_> = self.by_token.borrow().values().filter_map(Weak::upgrade).collect();
        for waiter in waiters {
            waiter.notify(WaiterEvent::Acquire);
        }
    }
}

/// Connections whose last commands may still arrive: far more than break in the minute in which
/// they may. An entry of an older one that is still in the queue has no subscriber, so it is
/// dropped at first sight.
const MAX_ENTRIES: usize = 64;

/// Below this many waiters a sweep is not worth its name.
const MIN_SWEEP: usize = 256;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_core::HolderLabel;

    use super::*;

    #[test]
    fn a_waiter_forgets_connections_that_ended_long_ago() {
        let token = Token::new(7, &HolderLabel::new("h").unwrap());
        let waiter = QueueWaiter::new(token, Ttl::new(Duration::from_secs(1)).unwrap());
        for connection in 0..10_000 {
            let place = waiter.place(&Channel::new(connection), &RetryContext::default());
            let before = connection.checked_sub(1).map(Channel::new);
            assert_eq!(place.previous.map(|entry| entry.channel), before);
        }
        let entries = waiter.residue().entries;
        assert_eq!(entries.len(), MAX_ENTRIES);
        assert_eq!(entries.last().map(|entry| entry.channel.clone()), Some(Channel::new(9_999)));
    }

    #[test]
    fn a_holder_leaves_an_entry_behind_only_where_a_command_may_still_arrive() {
        let token = Token::new(7, &HolderLabel::new("h").unwrap());
        let waiter = QueueWaiter::new(token, Ttl::new(Duration::from_secs(1)).unwrap());
        _ = waiter.place(&Channel::new(9), &RetryContext::default());
        assert_eq!(waiter.residue().entries.len(), 1);
        assert!(waiter.residue_as_holder().entries.is_empty());
        waiter.set_ambiguous();
        let residue = waiter.residue_as_holder();
        assert!(residue.ambiguous && residue.entries.len() == 1);
    }
}
