//! The store's thread: ops one after the other.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    mpsc as std_mpsc,
};

use tenure_core::{Op, Reply, Timestamp};
use tokio::sync::oneshot;

use super::store::Store;
use crate::error::NodeError;

/// One op on its way.
pub(super) struct StoreRequest {
    pub(super) op: Op,
    pub(super) deadline: Timestamp,
    pub(super) started: Arc<AtomicBool>,
    pub(super) answer: oneshot::Sender<Result<Reply, NodeError>>,
}

/// What the thread works with.
pub(super) struct Worker {
    pub(super) store: Store,
    pub(super) requests: std_mpsc::Receiver<StoreRequest>,
    pub(super) pending: Arc<AtomicUsize>,
}

impl Worker {
    /// Works until the node is gone.
    pub(super) fn run(mut self) {
        while let Ok(request) = self.requests.recv() {
            let StoreRequest { op, deadline, started, answer } = request;
            // As on a server: nobody waits for it, and nothing is lost when it is never done.
            if !answer.is_closed() || matches!(op, Op::Release { .. }) {
                started.store(true, Ordering::Release);
                // A caller that has stopped waiting is no error.
                _ = answer.send(self.store.apply(op, deadline));
            }
            self.pending.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
