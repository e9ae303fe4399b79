//! A whole node in plain Rust: a map of rows.

use std::collections::BTreeMap;

use crate::{LockKey, NodeTime, Op, Reply, Row};

/// All locks of one node.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: BTreeMap<LockKey, Row>,
    /// Sweep when the table has grown to this many rows.
    sweep_at: usize,
}

impl Table {
    /// Carries out one op, atomically by construction.
    pub fn apply(&mut self, at: NodeTime, op: &Op) -> Reply {
        self.sweep_if_grown(at);
        match op {
            Op::Renew(leases) => Reply::Renewed(
                leases
                    .iter()
                    .map(|lease| self.row(&lease.key, |row| row.renew(at, lease)))
                    .collect(),
            ),
            Op::Acquire { key, .. }
            | Op::Resume { key, .. }
            | Op::Steal { key, .. }
            | Op::Release { key, .. }
            | Op::ForceRelease { key }
            | Op::Inspect { key } => self.row(key, |row| row.apply(at, op)),
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
        if self.rows.len() < self.sweep_at.max(LEAST_SWEEP) {
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
const LEAST_SWEEP: usize = 1_024;
