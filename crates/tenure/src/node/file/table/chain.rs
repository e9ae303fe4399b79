//! Rows, and the proof that there is none.
//!
//! A checksum says that a row is what was written. That a row is *not* there, SQLite says when a
//! byte of its key or of the tree has changed as well, and the lock would be granted to a second
//! holder. So each row names the next one: a key is absent only when a sound row says so.

use rusqlite::{OptionalExtension as _, Transaction, params};
use tenure_core::Shown;

use super::{
    Fault,
    record::{COLUMNS, StoredLock},
};

/// Where a key is, or would be.
#[derive(Debug)]
pub(super) enum Found {
    Here(StoredLock),
    /// There is no row of this key. The one before it, which says so.
    After(Vec<u8>, StoredLock),
}

/// All rows, from that of the empty key on, which is no lock's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain<'a>(pub(super) &'a Transaction<'a>);

impl Chain<'_> {
    /// Makes the first row, of a store that is new.
    pub(super) fn begin(self) -> Result<(), Fault> {
        self.put(FIRST, &StoredLock::default())
    }

    pub(super) fn find(self, key: &[u8]) -> Result<Found, Fault> {
        if let Some((of, record)) = self.read("key = ?1", key)? {
            return if of == key { Ok(Found::Here(record)) } else { Err(damaged(key)) };
        }
        let (before, record) = self.before(key)?;
        match &record.next {
            Some(next) if next.as_slice() <= key => Err(damaged(key)),
            _ => Ok(Found::After(before, record)),
        }
    }

    /// Writes a row whose place is known.
    pub(super) fn put(self, key: &[u8], record: &StoredLock) -> Result<(), Fault> {
        let StoredLock { next, boot, token, token_ends, life, number, number_ends, queue_ends } =
            record;
        let sum = record.sum(key);
        let values =
            params![key, next, boot, token, token_ends, life, number, number_ends, queue_ends, sum];
        let sql = "REPLACE INTO locks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        self.0.execute(sql, values)?;
        Ok(())
    }

    /// Writes a row behind the one before it.
    pub(super) fn insert(
        self,
        (before, mut record_before): (Vec<u8>, StoredLock),
        key: &[u8],
        mut record: StoredLock,
    ) -> Result<(), Fault> {
        record.next = record_before.next.replace(key.to_vec());
        self.put(&before, &record_before)?;
        self.put(key, &record)
    }

    /// Takes a row out.
    pub(super) fn remove(self, key: &[u8], record: StoredLock) -> Result<(), Fault> {
        let (before, mut record_before) = self.before(key)?;
        if record_before.next.as_deref() != Some(key) {
            return Err(damaged(key));
        }
        record_before.next = record.next;
        self.put(&before, &record_before)?;
        self.0.execute("DELETE FROM locks WHERE key = ?1", [key])?;
        Ok(())
    }

    fn before(self, key: &[u8]) -> Result<(Vec<u8>, StoredLock), Fault> {
        let found = self.read("key < ?1 ORDER BY key DESC LIMIT 1", key)?;
        found.filter(|(before, _)| before.as_slice() < key).ok_or_else(|| damaged(key))
    }

    fn read(self, which: &str, key: &[u8]) -> Result<Option<(Vec<u8>, StoredLock)>, Fault> {
        let sql = format!("SELECT {COLUMNS} FROM locks WHERE {which}");
        let found = self.0.query_row(&sql, [key], StoredLock::read).optional()?;
        found.map(|sound| sound.ok_or_else(|| damaged(key))).transpose()
    }
}

pub(super) fn damaged(key: &[u8]) -> Fault {
    Fault::Damaged(format!(
        "what it says of the lock {} is not what was written",
        Shown::quoted(key)
    ))
}

/// The key of the first row.
const FIRST: &[u8] = b"";
