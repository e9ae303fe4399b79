//! The model, with what happens to a server besides our ops.

use std::collections::BTreeMap;

use tenure_core::{
    FencingToken, LockKey, NodeTime, Op, Reply, Row, Stored, Table, Ttl, Value, fence_ttl,
};

use crate::node::Seen;
use crate::steps::{Move, Place, RENEWED, Write};

/// The rows of all locks.
pub(crate) struct Model {
    rows: BTreeMap<LockKey, Row>,
    /// The same as a table, until somebody else writes: no table offers that.
    table: Option<Table>,
}

impl Model {
    /// Rows for these locks.
    pub(crate) fn new(locks: &[LockKey]) -> Self {
        let rows = locks.iter().map(|lock| (lock.clone(), Row::default())).collect();
        Self { rows, table: Some(Table::default()) }
    }

    /// Carries out an op.
    pub(crate) fn ask(&mut self, at: NodeTime, op: &Op) -> Reply {
        let reply = match op {
            Op::Acquire { key, .. }
            | Op::Resume { key, .. }
            | Op::Steal { key, .. }
            | Op::Release { key, .. }
            | Op::ForceRelease { key }
            | Op::Inspect { key } => self.row(key).apply(at, op),
            Op::Renew(leases) => {
                let renew = leases.iter().map(|l| self.row(&l.key).renew(at, l));
                Reply::Renewed(renew.collect())
            }
        };
        if let Some(table) = &mut self.table {
            assert_eq!(table.apply(at, op), reply, "the table does as its rows: {op:?}");
        }
        reply
    }

    /// Writes as somebody else.
    pub(crate) fn foreign(&mut self, at: NodeTime, key: &LockKey, place: Place, write: &Write) {
        self.table = None;
        let stored = self.place(key, place);
        let end = |ms| at.ttl_ms + ms;
        match (write, stored.as_mut()) {
            (Write::Text(bytes, ms), _) => {
                let value = Value::Bytes(bytes.clone());
                *stored = Some(Stored { value, ends_ms: ms.map(end) });
            }
            (Write::Other(name), _) => {
                let value = Value::OtherType((*name).to_owned());
                *stored = Some(Stored { value, ends_ms: None });
            }
            (Write::Expire(ms), Some(stored)) => stored.ends_ms = Some(end(*ms)),
            (Write::Persist, Some(stored)) => stored.ends_ms = None,
            (Write::Expire(_) | Write::Persist, None) => {}
            (Write::Delete, _) => *stored = None,
        }
    }

    /// Drops everything.
    pub(crate) fn flush(&mut self) {
        self.rows.values_mut().for_each(|row| *row = Row::default());
        self.table = self.table.take().map(|_| Table::default());
    }

    /// Where a move takes the clock, in µs; `None` when it needs a key that has no end.
    pub(crate) fn target(&mut self, at: NodeTime, to: &Move) -> Option<u64> {
        let from_ms = |ms: u64| ms.saturating_mul(1_000).saturating_add(at.wall_us % 1_000);
        let after = |ms: u64, by: i64| ms.saturating_add_signed(by);
        let target = match to {
            Move::By(us) => after(at.wall_us, *us),
            Move::ToEnd(key, place, ms) => {
                from_ms(after(self.place(key, *place).as_ref()?.ends_ms?, *ms))
            }
            Move::ToHalf(key, ms) => {
                let half = fence_ttl(Ttl::new(RENEWED).unwrap()) / 2;
                let end = self.place(key, Place::Fence).as_ref()?.ends_ms?;
                from_ms(after(end.saturating_sub(half), *ms))
            }
            Move::ToLastNumber(us) => after(FencingToken::MAX.get(), *us),
        };
        // Nobody's clock shows the year 200,000, nor a time before this lock was invented.
        (EARLIEST_US..=LATEST_US).contains(&target).then_some(target)
    }

    /// What [`Node::look`](crate::node::Node::look) must see.
    pub(crate) fn look(&mut self, at: NodeTime, locks: &[LockKey]) -> (Vec<Seen>, i64) {
        let mut seen = Vec::new();
        for lock in locks {
            // The server, too, is asked for every key, and so drops what has ended.
            let row = self.rows.get_mut(lock).unwrap();
            row.expire(at);
            seen.extend([&row.lock, &row.fence].map(|stored| see(stored.as_ref(), at)));
            if let Some(table) = &mut self.table {
                let inspect = Op::Inspect { key: lock.clone() };
                assert_eq!(table.apply(at, &inspect), row.apply(at, &inspect));
            }
        }
        let size = seen.iter().filter(|seen| seen.kind != "none").count();
        (seen, i64::try_from(size).unwrap())
    }

    fn row(&mut self, key: &LockKey) -> &mut Row {
        self.rows.get_mut(key).unwrap()
    }

    fn place(&mut self, key: &LockKey, place: Place) -> &mut Option<Stored> {
        let row = self.row(key);
        match place {
            Place::Lock => &mut row.lock,
            Place::Fence => &mut row.fence,
        }
    }
}

fn see(stored: Option<&Stored>, at: NodeTime) -> Seen {
    let Some(Stored { value, ends_ms }) = stored else {
        return Seen { kind: "none".to_owned(), value: None, pttl: -2 };
    };
    let pttl = ends_ms.map_or(-1, |ends| i64::try_from(ends - at.ttl_ms).unwrap());
    match value {
        Value::Bytes(bytes) => Seen { kind: "string".to_owned(), value: Some(bytes.clone()), pttl },
        Value::OtherType(name) => Seen { kind: name.clone(), value: None, pttl },
    }
}

const EARLIEST_US: u64 = 1_000_000_000_000_000;
const LATEST_US: u64 = 1 << 54;
