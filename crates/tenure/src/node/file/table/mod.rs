//! Rows of the model in tables of SQLite.

mod chain;
mod fault;
mod record;
mod schema;

use std::{cell::Cell, collections::BTreeSet, time::Duration};

use rusqlite::{Transaction, params};
use tenure_core::{Channel, FENCE_FLOOR_TTL, LockKey, NodeTime, Row, Stored, StoredValue};

pub(super) use self::fault::Fault;
use self::{
    chain::{Chain, Found, damaged},
    record::{StoredLock, sum},
};

/// The tables during one transaction.
pub(super) struct StoredTable<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    /// Which boot this is.
    pub(super) boot: &'a str,
    pub(super) at: NodeTime,
    /// Which channels have subscribers.
    pub(super) present: &'a dyn Fn(&Channel) -> bool,
    pub(super) wrote: Cell<bool>,
}

impl StoredTable<'_> {
    /// Makes the tables in a file that is empty, and checks any other, unless that was done.
    pub(super) fn prepare(&self, is_done: bool) -> Result<(), Fault> {
        let mode = self.transaction.query_row("PRAGMA journal_mode", [], |row| row.get(0));
        let mode: String = mode?;
        if mode != "persist" {
            // Somebody put a log beside the file, which SQLite reads in its place.
            return Err(Fault::NotOurs(format!("it is in SQLite's {mode} mode")));
        }
        if is_done { Ok(()) } else { schema::prepare(self.transaction) }
    }

    /// Loads a row, has it changed, and stores it if it was.
    pub(super) fn with<T>(
        &self,
        key: &LockKey,
        step: impl FnOnce(&mut Row) -> T,
    ) -> Result<T, Fault> {
        let found = Chain(self.transaction).find(key.as_bytes())?;
        let stored = self.stored(key, &found)?;
        let mut row = stored.clone();
        let is_foreign = self.adopt(&found, &mut row);
        let answer = step(&mut row);
        if is_foreign || row != stored {
            self.wrote.set(true);
            self.save_queue(key, members(&stored), members(&row))?;
            self.save(key, found, &stored, &row)?;
        }
        Ok(answer)
    }

    /// Drops a few rows that have ended, and more than a change of a row can add: a million names
    /// leave no million rows. Rows of other boots are taken over on the way, so that they end, too.
    pub(super) fn sweep(&self) -> Result<(), Fault> {
        let now = signed(self.at.ttl_ms);
        let mut select = self.transaction.prepare(
            "SELECT * FROM (SELECT key FROM locks WHERE boot = ?1 \
               AND max(token_ends_ms, number_ends_ms, queue_ends_ms) < ?2 LIMIT 2) \
             UNION ALL SELECT * FROM (SELECT key FROM locks WHERE boot < ?1 LIMIT 1) \
             UNION ALL SELECT * FROM (SELECT key FROM locks WHERE boot > ?1 LIMIT 1)",
        )?;
        let keys = select.query_map(params![self.boot, now], |row| row.get(0))?;
        let keys = keys.collect::<rusqlite::Result<Vec<Vec<u8>>>>()?;
        for key in keys {
            let key = LockKey::new(&key).map_err(|_| damaged(&key))?;
            self.with(&key, |row| row.expire(self.at))?;
        }
        Ok(())
    }

    /// What a record says, on the clock that it was written by.
    fn stored(&self, key: &LockKey, found: &Found) -> Result<Row, Fault> {
        let Found::Here(record) = found else { return Ok(Row::default()) };
        let number = record.number.map(|number| number.to_string().into_bytes());
        let members = if record.queue_ends > 0 { self.load_queue(key)? } else { BTreeSet::new() };
        let queue = (!members.is_empty()).then_some(StoredValue::Sorted(members));
        Ok(Row {
            lock: value(record.token.clone().map(StoredValue::Bytes), record.token_ends),
            fence: value(number.map(StoredValue::Bytes), record.number_ends),
            queue: value(queue, record.queue_ends),
        })
    }

    /// Brings a row of another boot to this one's clock. Whether and when that boot ended is not
    /// known, so a lease gets all that was left of it when it was written last.
    fn adopt(&self, found: &Found, row: &mut Row) -> bool {
        let Found::Here(record) = found else { return false };
        if record.boot.as_deref() == Some(self.boot) {
            return false;
        }
        let lease_ends = self.at.ttl_ms + record.life.unsigned_abs();
        let number_ends = lease_ends + duration_ms(FENCE_FLOOR_TTL);
        let parts = [
            (&mut row.lock, lease_ends),
            (&mut row.fence, number_ends),
            (&mut row.queue, number_ends),
        ];
        for (part, ends) in parts {
            if let Some(stored) = part {
                stored.ends_ms = Some(ends);
            }
        }
        row.forget_absent(self.present);
        true
    }

    fn load_queue(&self, key: &LockKey) -> Result<QueueMembers, Fault> {
        let sql = "SELECT score, member, sum FROM queue WHERE key = ?1";
        let mut select = self.transaction.prepare(sql)?;
        let entry = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, i64>(2)?))
        };
        let mut members = QueueMembers::new();
        for found in select.query_map([key.as_bytes()], entry)? {
            let (score, member, sum) = found?;
            if sum != entry_sum(key, score, &member) {
                return Err(damaged(key.as_bytes()));
            }
            members.insert((score.unsigned_abs(), member));
        }
        Ok(members)
    }

    fn save(&self, key: &LockKey, found: Found, stored: &Row, row: &Row) -> Result<(), Fault> {
        let chain = Chain(self.transaction);
        let key = key.as_bytes();
        let (record, before) = match found {
            Found::Here(record) if row.is_empty() => return chain.remove(key, record),
            Found::After(..) if row.is_empty() => return Ok(()),
            Found::Here(record) => (record, None),
            Found::After(before, record) => (StoredLock::default(), Some((before, record))),
        };
        let number = row.fence.as_ref().and_then(bytes);
        let number = number.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let token_ends = ends_ms(row.lock.as_ref());
        let is_same = row.lock == stored.lock;
        let life = if is_same { record.life } else { (token_ends - signed(self.at.ttl_ms)).max(0) };
        let record = StoredLock {
            next: record.next,
            boot: Some(self.boot.to_owned()),
            token: row.lock.as_ref().and_then(bytes).map(<[u8]>::to_vec),
            token_ends,
            life,
            number,
            number_ends: ends_ms(row.fence.as_ref()),
            queue_ends: ends_ms(row.queue.as_ref()),
        };
        match before {
            Some(before) => chain.insert(before, key, record),
            None => chain.put(key, &record),
        }
    }

    fn save_queue(
        &self,
        key: &LockKey,
        was: &QueueMembers,
        is: &QueueMembers,
    ) -> Result<(), Fault> {
        for (score, member) in was.difference(is) {
            let sql = "DELETE FROM queue WHERE key = ?1 AND score = ?2 AND member = ?3";
            let values = params![key.as_bytes(), signed(*score), member];
            self.transaction.execute(sql, values)?;
        }
        for (score, member) in is.difference(was) {
            let sql = "REPLACE INTO queue VALUES (?1, ?2, ?3, ?4)";
            let score = signed(*score);
            let values = params![key.as_bytes(), score, member, entry_sum(key, score, member)];
            self.transaction.execute(sql, values)?;
        }
        Ok(())
    }
}

type QueueMembers = BTreeSet<(u64, Vec<u8>)>;

fn members(row: &Row) -> &QueueMembers {
    const NONE: &QueueMembers = &QueueMembers::new();
    match row.queue.as_ref().map(|stored| &stored.value) {
        Some(StoredValue::Sorted(members)) => members,
        _ => NONE,
    }
}

fn entry_sum(key: &LockKey, score: i64, member: &[u8]) -> i64 {
    sum([Some(key.as_bytes()), Some(&score.to_le_bytes()), Some(member)])
}

fn value(value: Option<StoredValue>, ends_ms: i64) -> Option<Stored> {
    value.map(|value| Stored { value, ends_ms: Some(ends_ms.unsigned_abs()) })
}

fn bytes(stored: &Stored) -> Option<&[u8]> {
    match &stored.value {
        StoredValue::Bytes(bytes) => Some(bytes),
        StoredValue::Sorted(_) | StoredValue::OtherType(_) => None,
    }
}

fn ends_ms(stored: Option<&Stored>) -> i64 {
    signed(stored.and_then(|stored| stored.ends_ms).unwrap_or(0))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn duration_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
