//! The node that lives in this process, for tests and for trying things out.

use std::{
    collections::BTreeMap,
    future::ready,
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tenure_core::{Channel, Op, Reply, Table, Wake};
use tokio::sync::mpsc;

use super::{Brought, Call, Node, Waiter, waiter::Waiters};
use crate::{clock, random, task};

/// A table in memory: the reference model itself, behind a mutex.
#[derive(Debug)]
pub(super) struct MemoryNode {
    address: Arc<str>,
    shared: Arc<Mutex<Shared>>,
    channel: Channel,
    waiters: Rc<Waiters>,
}

/// What the clients of one table share: the table, and who listens.
#[derive(Debug, Default)]
struct Shared {
    table: Table,
    ears: BTreeMap<Channel, mpsc::UnboundedSender<Wake>>,
}

impl Shared {
    fn apply(&mut self, op: &Op) -> Reply {
        let Self { table, ears } = self;
        let present = |channel: &Channel| ears.get(channel).is_some_and(|ear| !ear.is_closed());
        let (reply, wakes) = table.apply(clock::node_time(), &present, op);
        for wake in wakes {
            if let Some(ear) = ears.get(wake.to()) {
                // One that has just gone is passed over after its claim, as on a server.
                _ = ear.send(wake);
            }
        }
        reply
    }
}

impl MemoryNode {
    /// A private table, or the one that all clients of this process share under `name`.
    pub(super) fn open(address: String, name: Option<&str>) -> Self {
        let shared = name.map_or_else(Arc::default, table_named);
        let channel = Channel::new(random::jitter());
        let (ear, wakes) = mpsc::unbounded_channel();
        let mut inner = lock(&shared);
        inner.ears.retain(|_, ear| !ear.is_closed());
        inner.ears.insert(channel.clone(), ear);
        drop(inner);
        let waiters = Rc::new(Waiters::default());
        task::spawn(Rc::clone(&waiters).deliver_all(wakes));
        Self { address: address.into(), shared, channel, waiters }
    }
}

fn table_named(name: &str) -> Arc<Mutex<Shared>> {
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

    fn call(&self, op: Op, _limit: Duration) -> Call {
        Box::pin(ready(Ok(lock(&self.shared).apply(&op))))
    }

    fn call_waiting(
        &self,
        mut op: Op,
        waiter: &Rc<Waiter>,
        brought: Brought,
        limit: Duration,
    ) -> Call {
        self.waiters.give_place(&mut op, waiter, &self.channel, &brought);
        self.call(op, limit)
    }

    fn tells_waiters(&self) -> bool {
        true
    }

    fn may_be_left(&self) -> bool {
        true
    }

    fn is_cut_off_from_the_past(&self) -> bool {
        true
    }
}

/// The tables with a name, while a client has them open.
static SHARED: Mutex<BTreeMap<String, Weak<Mutex<Shared>>>> = Mutex::new(BTreeMap::new());

/// A panic elsewhere cannot leave a table half changed: each op is one call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
