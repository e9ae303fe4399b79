//! Rows in SQLite.

use std::{cell::Cell, os::unix::fs::MetadataExt as _, sync::Arc, time::Duration};

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior};
use tenure_core::{LockKey, Look, Op, Renewal, Reply, Timestamp, Token, Wake};

use super::{
    place::{self, Location},
    process,
    stopped::{Obstacle, StoppedHolder},
    table::{self, Table},
};
use crate::{
    clock,
    error::{NodeError, NodeErrorKind, is_shortage},
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
    obstacle: Arc<Obstacle>,
}

#[derive(Debug)]
struct Opened {
    connection: Connection,
    boot: String,
    file: std::path::PathBuf,
    /// Which file this is: its device and its number there.
    identity: (u64, u64),
    /// SQLite's count of others' changes, at the last look.
    version: i64,
    /// This process has changed something since the last look.
    dirty: bool,
    /// The settings are made and the table is there: a transaction of ours has gone through.
    is_ready: bool,
    ops: u32,
}

impl Store {
    pub(super) fn new(name: Arc<str>, location: Location, obstacle: Arc<Obstacle>) -> Self {
        Self { name, location, opened: None, obstacle }
    }

    /// Carries out one op in one transaction, retrying until the deadline while others are busy.
    pub(super) fn apply(
        &mut self,
        op: &Op,
        deadline: Timestamp,
    ) -> Result<(Reply, Vec<Wake>), NodeError> {
        loop {
            let opened = match &mut self.opened {
                Some(opened) if identity(&opened.file) == Some(opened.identity) => opened,
                // Not yet open; or another file is in its place, or none.
                _ => self.opened.insert(open(&self.name, &self.location)?),
            };
            let error = match opened.apply(op) {
                Ok(reply) => {
                    self.obstacle.set(None);
                    return Ok(reply);
                }
                Err(error) => error,
            };
            let is_busy = is_busy(&error);
            if is_busy {
                self.obstacle.set(StoppedHolder::find(opened.identity));
            }
            if !is_busy || clock::now() >= deadline {
                let mut error = sqlite_error(&self.name, error);
                if let Some(stopped) = self.obstacle.get().filter(|_| is_busy) {
                    error = error.with_source(stopped);
                }
                if error.kind() == NodeErrorKind::UnfitStore {
                    // Another file may be put in its place.
                    self.opened = None;
                }
                return Err(error);
            }
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

    /// Whether a waiter has something to look at: the lock is set for it, or is free.
    ///
    /// Else when the lock ends, on the clock of leases.
    pub(super) fn turn_of(&self, key: &LockKey, token: &Token) -> Turn {
        let Some(opened) = &self.opened else { return Turn::Now };
        let sql = "SELECT token, token_ends_ms FROM locks WHERE key = ?1 AND boot = ?2";
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
        };
        let values = rusqlite::params![key.as_bytes(), opened.boot];
        match opened.connection.query_row(sql, values, read).optional() {
            Ok(Some((Some(holder), ends_ms))) if holder != token.as_bytes() => {
                Turn::After(Timestamp::from_nanos(ends_ms.saturating_mul(1_000_000)))
            }
            // A store that cannot be looked at is found out by the next op.
            _ => Turn::Now,
        }
    }
}

/// When a waiter should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    After(Timestamp),
}

fn open(name: &Arc<str>, location: &Location) -> Result<Opened, NodeError> {
    let file = place::prepare(location).map_err(|error| {
        let kind = match &error {
            place::Unfit::Io(_, error) if is_shortage(error) => NodeErrorKind::NoResources,
            place::Unfit::Io(..) => NodeErrorKind::Unreachable,
            _ => NodeErrorKind::UnfitStore,
        };
        NodeError::new(name, kind).with_source(error)
    })?;
    let boot = boot_id().map_err(|error| {
        let kind = match is_shortage(&error) {
            true => NodeErrorKind::NoResources,
            false => NodeErrorKind::UnfitStore,
        };
        NodeError::new(name, kind).with_source(error)
    })?;
    // Nothing is read from the file yet, so nobody can be in the way.
    let connection = Connection::open(&file).and_then(|connection| {
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    });
    let connection = connection.map_err(|error| sqlite_error(name, error))?;
    let identity = identity(&file).unwrap_or_default();
    Ok(Opened {
        connection,
        boot,
        file,
        identity,
        version: 0,
        dirty: false,
        is_ready: false,
        ops: 0,
    })
}

/// Which file is there now. A store that was deleted must not be used on by those who have it open:
/// those who come excluded nobody of them.
fn identity(file: &std::path::Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn sqlite_error(name: &Arc<str>, error: rusqlite::Error) -> NodeError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => NodeErrorKind::Busy,
        Some(ErrorCode::DiskFull) => NodeErrorKind::DiskFull,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => NodeErrorKind::UnfitStore,
        // SQLite does not say why.
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure)
            if is_shortage(&std::io::Error::other("unknown")) =>
        {
            NodeErrorKind::NoResources
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            NodeErrorKind::Unreachable
        }
        _ => NodeErrorKind::Refused,
    };
    NodeError::new(name, kind).with_source(error)
}

impl Opened {
    fn apply(&mut self, op: &Op) -> rusqlite::Result<(Reply, Vec<Wake>)> {
        self.ops = self.ops.wrapping_add(1);
        let sweep = self.ops.is_multiple_of(OPS_PER_SWEEP);
        if !self.is_ready {
            self.connection.execute_batch(SETTINGS)?;
        }
        let boot = &self.boot;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !self.is_ready {
            table::prepare(&transaction)?;
        }
        // Inside the transaction: nobody else can come between the time and the op.
        let at = clock::node_time();
        let table = Table { transaction: &transaction, boot, at, wrote: Cell::new(false) };
        let reply = match op {
            Op::Renew(leases) => {
                let renew = |lease: &Renewal| table.with(&lease.key, |row| row.renew(at, lease));
                let answers = leases.iter().map(renew).collect::<rusqlite::Result<_>>()?;
                (Reply::Renewed(answers), Vec::new())
            }
            Op::Look(looks) => {
                let mut answers = Vec::with_capacity(looks.len());
                // A queue is loaded once for all who look at it.
                for looks in looks.chunk_by(|one, other| one.key == other.key) {
                    let Some(Look { key, .. }) = looks.first() else { continue };
                    answers.extend(table.with(key, |row| {
                        looks.iter().map(|look| row.look(at, look)).collect::<Vec<_>>()
                    })?);
                }
                (Reply::Looked(answers), Vec::new())
            }
            Op::Clock => (Reply::Clock { wall_us: at.wall_us }, Vec::new()),
            Op::Acquire { key, .. }
            | Op::Confirm { key, .. }
            | Op::Resume { key, .. }
            | Op::Steal { key, .. }
            | Op::Release { key, .. }
            | Op::ForceRelease { key, .. }
            | Op::Inspect { key } => {
                table.with(key, |row| row.apply(at, &process::is_there, op))?
            }
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

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// What tells this boot from every other.
#[cfg(target_os = "linux")]
fn boot_id() -> std::io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// A journal that is overwritten in place costs fewer system calls than one that is deleted.
const SETTINGS: &str = "PRAGMA synchronous=OFF; PRAGMA journal_mode=PERSIST";

/// SQLite's own patience; ours goes on until the op's deadline. No transaction takes this long
/// unless its process was stopped inside it, and the shortest op has time for two of them.
const BUSY: Duration = Duration::from_millis(20);

const OPS_PER_SWEEP: u32 = 1_000;
