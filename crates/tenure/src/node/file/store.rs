//! Rows in SQLite.

use std::{cell::Cell, sync::Arc, time::Duration};

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior};
use tenure_core::{FENCE_FLOOR_TTL, LockKey, NodeTime, Op, Reply, Row, Stored, Timestamp, Value};

use super::{
    place::{self, Location},
    stopped,
};
use crate::{
    clock,
    error::{NodeError, NodeErrorKind},
};

/// A table of rows in a file: the model itself, loaded and stored around each op.
///
/// Nothing is synchronized to the disk, and nothing needs to be: leases do not outlive a boot,
/// since their TTLs run on a clock that starts with it. A row of another boot gives its lease up
/// and keeps its number, which is on the wall clock. A process that dies in the middle of a
/// transaction leaves a journal, which the next one rolls back.
#[derive(Debug)]
pub(super) struct Store {
    name: Arc<str>,
    location: Location,
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    connection: Connection,
    boot: String,
    file: std::path::PathBuf,
    /// SQLite's count of others' changes, at the last look.
    version: i64,
    /// This process has changed something since the last look.
    dirty: bool,
    /// The settings are made and the table is there: a transaction of ours has gone through.
    is_ready: bool,
    ops: u32,
}

impl Store {
    pub(super) fn new(name: Arc<str>, location: Location) -> Self {
        Self { name, location, opened: None }
    }

    /// Carries out one op in one transaction, retrying until the deadline while others are busy.
    pub(super) fn apply(&mut self, op: &Op, deadline: Timestamp) -> Result<Reply, NodeError> {
        let mut nudged = None;
        loop {
            let opened = match &mut self.opened {
                Some(opened) => opened,
                None => self.opened.insert(open(&self.name, &self.location)?),
            };
            let error = match opened.apply(op) {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if !is_busy(&error) || clock::now() >= deadline {
                let error = sqlite_error(&self.name, error);
                if error.kind() == NodeErrorKind::UnfitStore {
                    // Another file may be put in its place.
                    self.opened = None;
                }
                return Err(error);
            }
            // One that was stopped inside its transaction holds up everybody.
            nudged = nudged.or_else(|| stopped::Nudge::holders_of(&opened.file));
        }
    }

    /// Whether any process may have changed the store since the last look.
    pub(super) fn has_changed(&mut self) -> bool {
        let Some(opened) = &mut self.opened else { return true };
        let read = |row: &rusqlite::Row<'_>| row.get(0);
        let version = opened.connection.query_row("PRAGMA data_version", [], read);
        // A store that cannot be looked at is found out by the next op.
        let version = version.unwrap_or(opened.version);
        let changed = std::mem::replace(&mut opened.version, version) != version;
        std::mem::take(&mut opened.dirty) || changed
    }
}

fn open(name: &Arc<str>, location: &Location) -> Result<Opened, NodeError> {
    let file = place::prepare(location).map_err(|error| {
        let kind = match error {
            place::Unfit::Io(..) => NodeErrorKind::Unreachable,
            _ => NodeErrorKind::UnfitStore,
        };
        NodeError::new(name, kind).with_source(error)
    })?;
    let boot = boot_id()
        .map_err(|error| NodeError::new(name, NodeErrorKind::UnfitStore).with_source(error))?;
    // Nothing is read from the file yet, so nobody can be in the way.
    let connection = Connection::open(&file).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    });
    let connection = connection.map_err(|error| sqlite_error(name, error))?;
    Ok(Opened { connection, boot, file, version: 0, dirty: false, is_ready: false, ops: 0 })
}

fn sqlite_error(name: &Arc<str>, error: rusqlite::Error) -> NodeError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => NodeErrorKind::Busy,
        Some(ErrorCode::DiskFull) => NodeErrorKind::OutOfMemory,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => NodeErrorKind::UnfitStore,
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            NodeErrorKind::Unreachable
        }
        _ => NodeErrorKind::Refused,
    };
    NodeError::new(name, kind).with_source(error)
}

impl Opened {
    fn apply(&mut self, op: &Op) -> rusqlite::Result<Reply> {
        self.ops = self.ops.wrapping_add(1);
        let sweep = self.ops.is_multiple_of(OPS_PER_SWEEP);
        if !self.is_ready {
            self.connection.execute_batch(SETTINGS)?;
        }
        let boot = &self.boot;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !self.is_ready {
            transaction.execute_batch(SCHEMA)?;
        }
        // Inside the transaction: nobody else can come between the time and the op.
        let at = clock::node_time();
        let table = Table { transaction: &transaction, boot, at, wrote: Cell::new(false) };
        let reply = match op {
            Op::Renew(leases) => Reply::Renewed(
                leases
                    .iter()
                    .map(|lease| table.with(&lease.key, |row| row.renew(at, lease)))
                    .collect::<rusqlite::Result<_>>()?,
            ),
            Op::Acquire { key, .. }
            | Op::Resume { key, .. }
            | Op::Steal { key, .. }
            | Op::Release { key, .. }
            | Op::ForceRelease { key }
            | Op::Inspect { key } => table.with(key, |row| row.apply(at, op))?,
        };
        if sweep {
            table.sweep()?;
        }
        let wrote = table.wrote.get();
        transaction.commit()?;
        self.is_ready = true;
        self.dirty |= wrote;
        Ok(reply)
    }
}

/// The table during one transaction.
struct Table<'a> {
    transaction: &'a Transaction<'a>,
    boot: &'a str,
    at: NodeTime,
    wrote: Cell<bool>,
}

impl Table<'_> {
    /// Loads a row, has it changed, and stores it if it was.
    fn with<T>(&self, key: &LockKey, step: impl FnOnce(&mut Row) -> T) -> rusqlite::Result<T> {
        let stored = self.load(key)?;
        let mut row = stored.clone();
        let answer = step(&mut row);
        if row != stored {
            self.wrote.set(true);
            self.save(key, &row)?;
        }
        Ok(answer)
    }

    fn load(&self, key: &LockKey) -> rusqlite::Result<Row> {
        let mut select = self.transaction.prepare(
            "SELECT token, token_ends_ms, number, number_ends_ms, boot FROM locks WHERE key = ?1",
        )?;
        let row = select.query_row([key.as_bytes()], |row| {
            let this_boot = row.get::<_, String>(4)? == self.boot;
            let token: Option<Vec<u8>> = row.get(0)?;
            let number: Option<i64> = row.get(2)?;
            let ends =
                |index: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(index)?.unsigned_abs());
            let token = token.filter(|_| this_boot).map(Value::Bytes);
            let number = number.map(|number| Value::Bytes(number.to_string().into_bytes()));
            // Another boot's clock says nothing about the end of a number: it gets a full life.
            let full_life = || self.at.ttl_ms + duration_ms(FENCE_FLOOR_TTL);
            let number_ends = if this_boot { ends(3)? } else { full_life() };
            Ok(Row { lock: stored(token, ends(1)?), fence: stored(number, number_ends) })
        });
        Ok(row.optional()?.unwrap_or_default())
    }

    fn save(&self, key: &LockKey, row: &Row) -> rusqlite::Result<()> {
        if row.is_empty() {
            self.transaction.execute("DELETE FROM locks WHERE key = ?1", [key.as_bytes()])?;
            return Ok(());
        }
        let token = row.lock.as_ref().and_then(bytes);
        let number = row.fence.as_ref().and_then(bytes);
        let number =
            number.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<i64>().ok());
        let values = rusqlite::params![
            key.as_bytes(),
            token,
            ends_ms(row.lock.as_ref()),
            number,
            ends_ms(row.fence.as_ref()),
            self.boot
        ];
        self.transaction.execute("REPLACE INTO locks VALUES (?1, ?2, ?3, ?4, ?5, ?6)", values)?;
        Ok(())
    }

    /// Drops what has ended: a million names leave no million rows.
    fn sweep(&self) -> rusqlite::Result<()> {
        let now = i64::try_from(self.at.ttl_ms).unwrap_or(i64::MAX);
        self.transaction.execute(
            "DELETE FROM locks WHERE boot = ?1 AND number_ends_ms < ?2 AND token_ends_ms < ?2",
            rusqlite::params![self.boot, now],
        )?;
        Ok(())
    }
}

fn stored(value: Option<Value>, ends_ms: u64) -> Option<Stored> {
    value.map(|value| Stored { value, ends_ms: Some(ends_ms) })
}

fn bytes(stored: &Stored) -> Option<&[u8]> {
    match &stored.value {
        Value::Bytes(bytes) => Some(bytes),
        Value::OtherType(_) => None,
    }
}

fn ends_ms(stored: Option<&Stored>) -> i64 {
    let ends = stored.and_then(|stored| stored.ends_ms).unwrap_or(0);
    i64::try_from(ends).unwrap_or(i64::MAX)
}

fn duration_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// What tells this boot from every other.
#[cfg(target_os = "linux")]
fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// What is stored, version 1. Times are on the clock that counts from the row's boot.
const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS locks (
    key BLOB PRIMARY KEY,
    token BLOB,
    token_ends_ms INTEGER NOT NULL,
    number INTEGER,
    number_ends_ms INTEGER NOT NULL,
    boot TEXT NOT NULL
) WITHOUT ROWID";

/// A journal that is overwritten in place costs fewer system calls than one that is deleted.
const SETTINGS: &str = "PRAGMA synchronous=OFF; PRAGMA journal_mode=PERSIST";

/// SQLite's own patience; ours goes on until the op's deadline. No transaction takes this long
/// unless its process was stopped inside it, and the shortest op has time for two of them.
const BUSY: Duration = Duration::from_millis(20);

const OPS_PER_SWEEP: u32 = 1_000;
