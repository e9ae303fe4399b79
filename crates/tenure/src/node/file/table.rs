//! Rows of the model in tables of SQLite.

use std::{cell::Cell, collections::BTreeSet, time::Duration};

use rusqlite::{OptionalExtension as _, Transaction, ffi, params};
use tenure_core::{FENCE_FLOOR_TTL, LockKey, NodeTime, Row, Stored, Value};

/// The tables during one transaction.
pub(super) struct Table<'a> {
    pub(super) transaction: &'a Transaction<'a>,
    pub(super) boot: &'a str,
    pub(super) at: NodeTime,
    pub(super) wrote: Cell<bool>,
}

impl Table<'_> {
    /// Loads a row, has it changed, and stores it if it was.
    pub(super) fn with<T>(
        &self,
        key: &LockKey,
        step: impl FnOnce(&mut Row) -> T,
    ) -> rusqlite::Result<T> {
        let stored = self.load(key)?;
        let mut row = stored.clone();
        let answer = step(&mut row);
        if row != stored {
            self.wrote.set(true);
            self.save(key, &row)?;
            self.save_queue(key, members(&stored), members(&row))?;
        }
        Ok(answer)
    }

    /// Drops what has ended: a million names leave no million rows.
    pub(super) fn sweep(&self) -> rusqlite::Result<()> {
        let ended =
            "boot = ?1 AND number_ends_ms < ?2 AND token_ends_ms < ?2 AND queue_ends_ms < ?2";
        let now = i64::try_from(self.at.ttl_ms).unwrap_or(i64::MAX);
        let queues =
            format!("DELETE FROM queue WHERE key IN (SELECT key FROM locks WHERE {ended})");
        self.transaction.execute(&queues, params![self.boot, now])?;
        let rows = format!("DELETE FROM locks WHERE {ended}");
        self.transaction.execute(&rows, params![self.boot, now])?;
        Ok(())
    }

    fn load(&self, key: &LockKey) -> rusqlite::Result<Row> {
        let mut select = self.transaction.prepare(
            "SELECT token, token_ends_ms, number, number_ends_ms, queue_ends_ms, boot \
             FROM locks WHERE key = ?1",
        )?;
        let found = select.query_row([key.as_bytes()], |row| {
            let this_boot = row.get::<_, String>(5)? == self.boot;
            let token: Option<Vec<u8>> = row.get(0)?;
            let number: Option<i64> = row.get(2)?;
            let ends = |index: usize| row.get::<_, i64>(index).map(i64::unsigned_abs);
            // Another boot's clock says nothing about the end of a number: it gets a full life.
            let full_life = self.at.ttl_ms + duration_ms(FENCE_FLOOR_TTL);
            let number_ends = if this_boot { ends(3)? } else { full_life };
            let number = number.map(|number| number.to_string().into_bytes());
            let lock = stored(token.filter(|_| this_boot).map(Value::Bytes), ends(1)?);
            let fence = stored(number.map(Value::Bytes), number_ends);
            Ok((lock, fence, this_boot.then_some(ends(4)?).filter(|ends| *ends > 0)))
        });
        let Some((lock, fence, queue_ends)) = found.optional()? else { return Ok(Row::default()) };
        let members = if queue_ends.is_some() { self.load_queue(key)? } else { BTreeSet::new() };
        let queue = (!members.is_empty()).then_some(Value::Sorted(members));
        Ok(Row { lock, fence, queue: stored(queue, queue_ends.unwrap_or(0)) })
    }

    fn load_queue(&self, key: &LockKey) -> rusqlite::Result<Members> {
        let sql = "SELECT score, member FROM queue WHERE key = ?1";
        let mut select = self.transaction.prepare(sql)?;
        let entry = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, Vec<u8>>(1)?))
        };
        select.query_map([key.as_bytes()], entry)?.collect()
    }

    fn save(&self, key: &LockKey, row: &Row) -> rusqlite::Result<()> {
        if row.is_empty() {
            self.transaction.execute("DELETE FROM locks WHERE key = ?1", [key.as_bytes()])?;
            return Ok(());
        }
        let number = row.fence.as_ref().and_then(bytes);
        let number = number.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let values = params![
            key.as_bytes(),
            row.lock.as_ref().and_then(bytes),
            ends_ms(row.lock.as_ref()),
            number.map(|number: i64| number),
            ends_ms(row.fence.as_ref()),
            ends_ms(row.queue.as_ref()),
            self.boot
        ];
        let sql = "REPLACE INTO locks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.transaction.execute(sql, values)?;
        Ok(())
    }

    fn save_queue(&self, key: &LockKey, was: &Members, is: &Members) -> rusqlite::Result<()> {
        for (score, member) in was.difference(is) {
            let sql = "DELETE FROM queue WHERE key = ?1 AND score = ?2 AND member = ?3";
            self.transaction.execute(sql, params![key.as_bytes(), signed(*score), member])?;
        }
        for (score, member) in is.difference(was) {
            let sql = "REPLACE INTO queue VALUES (?1, ?2, ?3)";
            self.transaction.execute(sql, params![key.as_bytes(), signed(*score), member])?;
        }
        Ok(())
    }
}

type Members = BTreeSet<(u64, Vec<u8>)>;

fn members(row: &Row) -> &Members {
    const NONE: &Members = &Members::new();
    match row.queue.as_ref().map(|stored| &stored.value) {
        Some(Value::Sorted(members)) => members,
        _ => NONE,
    }
}

fn stored(value: Option<Value>, ends_ms: u64) -> Option<Stored> {
    value.map(|value| Stored { value, ends_ms: Some(ends_ms) })
}

fn bytes(stored: &Stored) -> Option<&[u8]> {
    match &stored.value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Sorted(_) | Value::OtherType(_) => None,
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

/// Makes the tables, unless they are there.
///
/// # Errors
///
/// Those of SQLite; that it is no database of ours when another version of this made it.
pub(super) fn prepare(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    match transaction.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? {
        VERSION => Ok(()),
        0 => {
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "user_version", VERSION)
        }
        other => Err(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_NOTADB),
            Some(format!(
                "the store has version {other}, and this program knows version {VERSION}"
            )),
        )),
    }
}

const VERSION: i64 = 1;

/// What is stored. Times are on the clock that counts from the row's boot.
const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS locks (
    key BLOB PRIMARY KEY,
    token BLOB,
    token_ends_ms INTEGER NOT NULL,
    number INTEGER,
    number_ends_ms INTEGER NOT NULL,
    queue_ends_ms INTEGER NOT NULL,
    boot TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS queue (
    key BLOB,
    score INTEGER,
    member BLOB,
    PRIMARY KEY (key, score, member)
) WITHOUT ROWID";
