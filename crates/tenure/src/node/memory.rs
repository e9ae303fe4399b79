//! The node that lives in this process, for tests and for trying things out.

use std::{
    collections::BTreeMap,
    future::ready,
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tenure_core::{Channel, Notification, Op, Reply, Table};
use tokio::sync::mpsc;

use super::{Node, PendingReply, QueueWaiter, ReleaseListener, RetryContext, waiter::Waiters};
use crate::{clock, quiet::Work, random, task};

/// A table in memory: the reference model itself, behind a mutex.
#[derive(Debug)]
pub(super) struct MemoryNode {
    address: Arc<str>,
    shared: Arc<Mutex<SharedTable>>,
    channel: Channel,
    subscriber: Subscriber,
    waiters: Rc<Waiters>,
}

/// A client that is subscribed to a channel.
#[derive(Clone, Debug)]
struct Subscriber {
    notifications: mpsc::UnboundedSender<Notification>,
    work: Option<Arc<Work>>,
}

impl Subscriber {
    /// One that has just gone is passed over after its provisional grant, as on a server.
    fn notify(&self, notification: Notification) {
        if let Some(work) = &self.work {
            work.expect();
        }
        if self.notifications.send(notification).is_err() {
            self.arrived();
        }
    }

    fn arrived(&self) {
        if let Some(work) = &self.work {
            work.arrived();
        }
    }

    fn is_closed(&self) -> bool {
        self.notifications.is_closed()
    }
}

/// What the clients of one table share: the table, and the subscribers of each channel.
#[derive(Debug, Default)]
struct SharedTable {
    table: Table,
    subscribers: BTreeMap<Channel, Vec<Subscriber>>,
}

impl SharedTable {
    fn apply(&mut self, op: &Op) -> Reply {
        let Self { table, subscribers } = self;
        let at = |channel: &Channel| subscribers.get(channel).into_iter().flatten();
        let present = |channel: &Channel| at(channel).any(|subscriber| !subscriber.is_closed());
        let (reply, notifications) = table.apply(clock::node_time(), &present, op);
        for notification in notifications {
            for subscriber in at(notification.to()) {
                subscriber.notify(notification.clone());
            }
        }
        reply
    }

    fn listen(&mut self, channel: &Channel, subscriber: &Subscriber) {
        self.subscribers.entry(channel.clone()).or_default().push(subscriber.clone());
    }

    /// Drops the subscribers that are not wanted.
    fn retain_subscribers(&mut self, is_wanted: impl Fn(&Channel, &Subscriber) -> bool) {
        self.subscribers.retain(|channel, subscribers| {
            subscribers.retain(|subscriber| is_wanted(channel, subscriber));
            !subscribers.is_empty()
        });
    }
}

impl MemoryNode {
    /// A private table, or the one that all clients of this process share under `name`.
    pub(super) fn open(address: String, name: Option<&str>, work: Option<&Arc<Work>>) -> Self {
        let shared = name.map_or_else(Arc::default, table_named);
        let channel = Channel::new(random::jitter());
        let (sender, mut notifications) = mpsc::unbounded_channel();
        let subscriber = Subscriber { notifications: sender, work: work.cloned() };
        let mut inner = lock(&shared);
        inner.retain_subscribers(|_, subscriber| !subscriber.is_closed());
        inner.listen(&channel, &subscriber);
        drop(inner);
        let waiters = Rc::new(Waiters::default());
        let (delivered_to, receiver) = (Rc::clone(&waiters), subscriber.clone());
        task::spawn(async move {
            while let Some(notification) = notifications.recv().await {
                receiver.arrived();
                delivered_to.deliver(notification);
            }
        });
        Self { address: address.into(), shared, channel, subscriber, waiters }
    }
}

fn table_named(name: &str) -> Arc<Mutex<SharedTable>> {
    let mut shared = lock(&SHARED);
    shared.retain(|_, table| table.strong_count() > 0);
    let table = shared.get(name).and_then(Weak::upgrade).unwrap_or_default();
    shared.insert(name.to_owned(), Arc::downgrade(&table));
    table
}

impl Node for MemoryNode {
    fn name(&self) -> &Arc<str> {
        &self.address
    }

    fn call(&self, op: Op, _limit: Duration) -> PendingReply {
        Box::pin(ready(Ok(lock(&self.shared).apply(&op))))
    }

    fn call_waiting(
        &self,
        mut op: Op,
        waiter: &Rc<QueueWaiter>,
        context: RetryContext,
        limit: Duration,
    ) -> PendingReply {
        self.waiters.give_place(&mut op, waiter, &self.channel, &context);
        self.call(op, limit)
    }

    fn notifies_waiters(&self) -> bool {
        true
    }

    fn subscribe(&self, listener: &Rc<ReleaseListener>) {
        if self.waiters.listeners.add(listener) {
            lock(&self.shared).listen(listener.channel(), &self.subscriber);
        }
    }

    fn unsubscribe(&self, listener: &Rc<ReleaseListener>) {
        if self.waiters.listeners.remove(listener) {
            let is_ours = |channel: &Channel, subscriber: &Subscriber| {
                channel == listener.channel()
                    && subscriber.notifications.same_channel(&self.subscriber.notifications)
            };
            lock(&self.shared)
                .retain_subscribers(|channel, subscriber| !is_ours(channel, subscriber));
        }
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn old_connections_are_closed(&self) -> bool {
        true
    }
}

/// The tables with a name, while a client has them open.
static SHARED: Mutex<BTreeMap<String, Weak<Mutex<SharedTable>>>> = Mutex::new(BTreeMap::new());

/// A panic elsewhere cannot leave a table half changed: each op is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use tenure_core::{FencingToken, HolderLabel, LockKey, Token, Ttl};

    use super::*;

    async fn is_notified(listener: &ReleaseListener) -> bool {
        // The task that delivers gets its turn.
        tokio::task::yield_now().await;
        pin!(listener.notified()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Two clients of one table: one is notified of the other's release, as long as it subscribes.
    async fn notify_each_other() {
        let key = LockKey::new("k").unwrap();
        let token = Token::new(7, &HolderLabel::new("h").unwrap());
        let (entries, number) = (Vec::new(), FencingToken::new(1));
        let ttl = Ttl::new(Duration::from_secs(600)).unwrap();
        let listener = ReleaseListener::new(&key);
        let take = Op::Steal { key: key.clone(), token: token.clone(), ttl, any: false };
        let release =
            Op::Release { key, token, entries, leave_tombstone: false, yield_ms: 0, number };
        let open =
            || MemoryNode::open("memory://notifications".into(), Some("notifications"), None);
        let (holder, waiter) = (open(), open());
        for (is_listening, name) in [(true, "it listens"), (false, "it has stopped listening")] {
            if is_listening {
                waiter.subscribe(&listener);
            } else {
                waiter.unsubscribe(&listener);
            }
            for op in [&take, &release] {
                holder.call(op.clone(), Duration::MAX).await.unwrap();
            }
            assert_eq!(is_notified(&listener).await, is_listening, "{name}");
            let listens = lock(&holder.shared).subscribers.contains_key(listener.channel());
            assert_eq!(listens, is_listening, "{name}");
        }
    }

    #[test]
    fn clients_of_one_table_notify_each_other_of_a_release() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, notify_each_other());
    }
}
