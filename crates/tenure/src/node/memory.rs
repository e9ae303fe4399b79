//! The node that lives in this process, for tests and for trying things out.

use std::{
    collections::BTreeMap,
    future::ready,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use tenure_core::{Op, Table};

use super::{Call, Freed, Node};
use crate::clock;

/// A table in memory: the reference model itself, behind a mutex.
#[derive(Debug)]
pub(super) struct MemoryNode {
    address: Arc<str>,
    table: Arc<Mutex<Table>>,
}

impl MemoryNode {
    /// A private table, or the one that all clients of this process share under `name`.
    pub(super) fn open(address: String, name: Option<&str>) -> Self {
        Self { address: address.into(), table: name.map_or_else(Arc::default, shared_table) }
    }
}

fn shared_table(name: &str) -> Arc<Mutex<Table>> {
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
        let reply = lock(&self.table).apply(clock::node_time(), &op);
        Box::pin(ready(Ok(reply)))
    }

    fn freed(&self) -> Freed {
        Box::pin(std::future::pending())
    }

    fn is_written(&self) -> bool {
        true
    }

    fn is_cut_off_from_the_past(&self) -> bool {
        true
    }
}

/// The tables with a name, while a client has them open.
static SHARED: Mutex<BTreeMap<String, Weak<Mutex<Table>>>> = Mutex::new(BTreeMap::new());

/// A panic elsewhere cannot leave a table half changed: each op is one call.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
