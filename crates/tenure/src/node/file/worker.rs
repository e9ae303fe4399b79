//! The store's thread: ops one after the other, and a look now and then for those who wait.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc as std_mpsc,
    },
    time::Duration,
};

use tenure_core::{LockKey, Op, Reply, Timestamp, Token, Wake};
use tokio::sync::{mpsc, oneshot};

use super::store::{Store, Turn};
use crate::{clock, error::NodeError};

/// One op on its way.
pub(super) struct Request {
    pub(super) op: Op,
    pub(super) deadline: Timestamp,
    pub(super) started: Arc<AtomicBool>,
    pub(super) answer: oneshot::Sender<Result<Reply, NodeError>>,
}

/// What the thread works with.
pub(super) struct Worker {
    store: Store,
    requests: std_mpsc::Receiver<Request>,
    pending: Arc<AtomicUsize>,
    wakes: mpsc::UnboundedSender<Wake>,
    /// Those of this client who stand in a queue, by their tokens.
    watched: HashMap<Arc<str>, Watched>,
}

struct Watched {
    key: LockKey,
    token: Token,
    wake: Wake,
    /// The lock ends then unless it is renewed.
    look_after: Timestamp,
}

impl Worker {
    pub(super) fn new(
        store: Store,
        requests: std_mpsc::Receiver<Request>,
        pending: Arc<AtomicUsize>,
        wakes: mpsc::UnboundedSender<Wake>,
    ) -> Self {
        Self { store, requests, pending, wakes, watched: HashMap::new() }
    }

    /// Works until the node is gone.
    pub(super) fn run(mut self) {
        loop {
            let next = if self.watched.is_empty() {
                self.requests.recv().map_err(|_| std_mpsc::RecvTimeoutError::Disconnected)
            } else {
                self.requests.recv_timeout(LOOK)
            };
            match next {
                Ok(request) => self.carry_out(request),
                Err(std_mpsc::RecvTimeoutError::Timeout) => {}
                Err(std_mpsc::RecvTimeoutError::Disconnected) => return,
            }
            self.look();
        }
    }

    fn carry_out(&mut self, request: Request) {
        let Request { op, deadline, started, answer } = request;
        // As on a server: nobody waits for it, and nothing is lost when it is never done.
        if !answer.is_closed() || matches!(op, Op::Release { .. }) {
            started.store(true, Ordering::Release);
            let result = self.store.apply(&op, deadline).map(|(reply, wakes)| {
                for wake in wakes {
                    // Those of other processes see it in the store; the engine knows its own.
                    _ = self.wakes.send(wake);
                }
                self.watch(&op, &reply);
                reply
            });
            // A caller that has stopped waiting is no error.
            _ = answer.send(result);
        }
        self.pending.fetch_sub(1, Ordering::AcqRel);
    }

    /// Begins or ends to look for a waiter.
    fn watch(&mut self, op: &Op, reply: &Reply) {
        match op {
            Op::Acquire { key, token, place: Some(place), .. } => {
                if matches!(reply, Reply::Queued { .. }) {
                    let to = place.entry.channel.clone();
                    let wake = Wake::Grant { to, token: token.as_str().into() };
                    let (key, token) = (key.clone(), token.clone());
                    // The first look tells when the lock ends.
                    let look_after = Timestamp::default();
                    let watched = Watched { key, token, wake, look_after };
                    self.watched.insert(watched.token.as_str().into(), watched);
                } else {
                    self.watched.remove(token.as_str());
                }
            }
            Op::Release { token, .. } => _ = self.watched.remove(token.as_str()),
            _ => {}
        }
    }

    /// Wakes those whose turn it is: any process may have changed the store, and locks end.
    fn look(&mut self) {
        if self.watched.is_empty() {
            return;
        }
        let changed = self.store.has_changed();
        let now = clock::now();
        let Self { store, watched, wakes, .. } = self;
        watched.retain(|_, waiter| {
            if !changed && now < waiter.look_after {
                return true;
            }
            match store.turn_of(&waiter.key, &waiter.token) {
                Turn::After(end) if now <= end => {
                    waiter.look_after = end + PAST_END;
                    true
                }
                _ => {
                    // It looks, and is watched again if it still has to wait.
                    _ = wakes.send(waiter.wake.clone());
                    false
                }
            }
        });
    }
}

/// How often the thread looks while somebody waits: two looks and an op are within 50 ms.
const LOOK: Duration = Duration::from_millis(15);

/// A lock is alive at its end, and over after it.
const PAST_END: Duration = Duration::from_millis(1);
