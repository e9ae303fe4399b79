//! Subscribers to the release of a lock of several nodes.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use tenure_core::{Channel, LockKey};
use tokio::sync::Notify;

/// A subscriber to one lock, at all of its nodes.
///
/// A notification is an optimisation: where none is sent, or it is lost, polls find the release.
#[derive(Debug)]
pub(crate) struct ReleaseListener {
    channel: Channel,
    notify: Notify,
}

impl ReleaseListener {
    pub(crate) fn new(key: &LockKey) -> Rc<Self> {
        Rc::new(Self { channel: Channel::of_lock(key), notify: Notify::new() })
    }

    /// Waits for a notification. All since the last call count as one.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }
}

/// The listeners of one node, by the channels of their locks.
#[derive(Debug, Default)]
pub(super) struct ReleaseListeners(RefCell<HashMap<Channel, Vec<Rc<ReleaseListener>>>>);

impl ReleaseListeners {
    /// Adds one; says whether it is the first of its lock.
    pub(super) fn add(&self, listener: &Rc<ReleaseListener>) -> bool {
        let mut by_channel = self.0.borrow_mut();
        let listeners = by_channel.entry(listener.channel.clone()).or_default();
        listeners.push(Rc::clone(listener));
        listeners.len() == 1
    }

    /// Takes one out; says whether it was the last of its lock.
    pub(super) fn remove(&self, listener: &Rc<ReleaseListener>) -> bool {
        let mut by_channel = self.0.borrow_mut();
        let Some(listeners) = by_channel.get_mut(&listener.channel) else { return false };
        listeners.retain(|other| !Rc::ptr_eq(other, listener));
        let was_last = listeners.is_empty();
        if was_last {
            by_channel.remove(&listener.channel);
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
    pub(super) fn notify(&self, channel: &[u8]) {
        for listener in self.0.borrow().get(channel).into_iter().flatten() {
            listener.notify.notify_one();
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

    fn is_notified(listener: &ReleaseListener) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(listener.notified()).poll(&mut cx).is_ready()
    }

    #[test]
    fn notifications_go_to_subscribers_only() {
        let key = |key: &str| LockKey::new(key).unwrap();
        let (one, two, other) = (
            ReleaseListener::new(&key("k")),
            ReleaseListener::new(&key("k")),
            ReleaseListener::new(&key("x")),
        );
        let listeners = ReleaseListeners::default();
        assert_eq!(
            [&one, &two, &other].map(|listener| listeners.add(listener)),
            [true, false, true]
        );
        listeners.notify(b"tenure:free:k");
        listeners.notify(b"tenure:free:k");
        listeners.notify(b"tenure:free:");
        assert_eq!([&one, &two, &other].map(|listener| is_notified(listener)), [true, true, false]);
        assert!(!is_notified(&one), "several are one");
        assert!(!listeners.remove(&one) && listeners.has(one.channel()));
        listeners.notify(b"tenure:free:k");
        assert!(!is_notified(&one) && is_notified(&two));
        assert!(listeners.remove(&two) && !listeners.remove(&two));
        assert_eq!(listeners.channels(), std::slice::from_ref(other.channel()));
    }
}
