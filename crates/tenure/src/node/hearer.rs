//! Subscribers to the release of a lock of several nodes.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use tenure_core::{Channel, LockKey};
use tokio::sync::Notify;

/// A subscriber to one lock, at all of its nodes.
///
/// A notification is an optimisation: where none is sent, or it is lost, polls find the release.
#[derive(Debug)]
pub(crate) struct Hearer {
    channel: Channel,
    told: Notify,
}

impl Hearer {
    pub(crate) fn new(key: &LockKey) -> Rc<Self> {
        Rc::new(Self { channel: Channel::of_lock(key), told: Notify::new() })
    }

    /// Waits for a hint. Those that came since the last one are one.
    pub(crate) async fn told(&self) {
        self.told.notified().await;
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }
}

/// The hearers of one node, by the channels of their locks.
#[derive(Debug, Default)]
pub(super) struct Hearers(RefCell<HashMap<Channel, Vec<Rc<Hearer>>>>);

impl Hearers {
    /// Adds one; says whether it is the first of its lock.
    pub(super) fn add(&self, hearer: &Rc<Hearer>) -> bool {
        let mut by_channel = self.0.borrow_mut();
        let hearers = by_channel.entry(hearer.channel.clone()).or_default();
        hearers.push(Rc::clone(hearer));
        hearers.len() == 1
    }

    /// Takes one out; says whether it was the last of its lock.
    pub(super) fn remove(&self, hearer: &Rc<Hearer>) -> bool {
        let mut by_channel = self.0.borrow_mut();
        let Some(hearers) = by_channel.get_mut(&hearer.channel) else { return false };
        hearers.retain(|other| !Rc::ptr_eq(other, hearer));
        let was_last = hearers.is_empty();
        if was_last {
            by_channel.remove(&hearer.channel);
        }
        was_last
    }

    /// Whether anybody listens to this channel.
    pub(super) fn has(&self, channel: &Channel) -> bool {
        self.0.borrow().contains_key(channel)
    }

    /// Every channel that somebody listens to.
    pub(super) fn channels(&self) -> Vec<Channel> {
        self.0.borrow().keys().cloned().collect()
    }

    /// Notifies all subscribers of this channel.
    pub(super) fn tell(&self, channel: &[u8]) {
        for hearer in self.0.borrow().get(channel).into_iter().flatten() {
            hearer.told.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    fn is_told(hearer: &Hearer) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(hearer.told()).poll(&mut cx).is_ready()
    }

    #[test]
    fn notifications_go_to_subscribers_only() {
        let key = |key: &str| LockKey::new(key).unwrap();
        let (one, two, other) =
            (Hearer::new(&key("k")), Hearer::new(&key("k")), Hearer::new(&key("x")));
        let hearers = Hearers::default();
        assert_eq!([&one, &two, &other].map(|hearer| hearers.add(hearer)), [true, false, true]);
        hearers.tell(b"tenure:free:k");
        hearers.tell(b"tenure:free:k");
        hearers.tell(b"tenure:free:");
        assert_eq!([&one, &two, &other].map(|hearer| is_told(hearer)), [true, true, false]);
        assert!(!is_told(&one), "several are one");
        assert!(!hearers.remove(&one) && hearers.has(one.channel()));
        hearers.tell(b"tenure:free:k");
        assert!(!is_told(&one) && is_told(&two));
        assert!(hearers.remove(&two) && !hearers.remove(&two));
        assert_eq!(hearers.channels(), std::slice::from_ref(other.channel()));
    }
}
