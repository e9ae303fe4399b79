//! A whole node in plain Rust: a map of rows.

use std::collections::BTreeMap;

use crate::{
    Channel, Eligibility, LockKey, NodeTime, Notification, Op, Poll, RenewRequest, Reply, Row,
};

/// All locks of one node.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: BTreeMap<LockKey, Row>,
    /// Sweep when the table has grown to this many rows.
    sweep_at: usize,
}

impl Table {
    /// Carries out one op, atomically by construction.
    ///
    /// `present` says which channels have subscribers; the messages are for the caller to deliver.
    pub fn apply(
        &mut self,
        at: NodeTime,
        present: &dyn Fn(&Channel) -> bool,
        op: &Op,
    ) -> (Reply, Vec<Notification>) {
        self.sweep_if_grown(at);
        match op {
            Op::Renew(leases) => {
                let renew = |lease: &RenewRequest| self.row(&lease.key, |row| row.renew(at, lease));
                (Reply::Renewed(leases.iter().map(renew).collect()), Vec::new())
            }
            Op::Poll(polls) => {
                let poll = |poll: &Poll| self.row(&poll.key, |row| row.poll(at, poll));
                (Reply::Polled(polls.iter().map(poll).collect()), Vec::new())
            }
            Op::Clock => (Reply::Clock { wall_us: at.wall_us }, Vec::new()),
            // It never loses a row that somebody holds without the end of all its clients.
            Op::Checked { op, .. } => {
                let (reply, notifications) = self.apply(at, present, op);
                let eligibility = Eligibility::Eligible;
                (Reply::Checked { eligibility, reply: Box::new(reply) }, notifications)
            }
            Op::Acquire { key, .. }
            | Op::Confirm { key, .. }
            | Op::Resume { key, .. }
            | Op::Steal { key, .. }
            | Op::Release { key, .. }
            | Op::ForceRelease { key, .. }
            | Op::Inspect { key, .. } => self.row(key, |row| row.apply(at, present, op)),
        }
    }

    /// How many locks have anything stored, their fence keys included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn row<T>(&mut self, key: &LockKey, step: impl FnOnce(&mut Row) -> T) -> T {
        let row = self.rows.entry(key.clone()).or_default();
        let answer = step(row);
        if row.is_empty() {
            self.rows.remove(key);
        }
        answer
    }

    /// Drops what has ended, at a cost spread over as many ops as there were rows.
    fn sweep_if_grown(&mut self, at: NodeTime) {
        if self.rows.len() < self.sweep_at.max(MIN_SWEEP) {
            return;
        }
        self.rows.retain(|_, row| {
            row.expire(at);
            !row.is_empty()
        });
        self.sweep_at = 2 * self.rows.len();
    }
}

/// Below this many rows a sweep is not worth its name.
const MIN_SWEEP: usize = 1_024;
