//! One row as it is stored, and the checksum that says whether it is what was written.

use rusqlite::Row;

/// The content of the row of a key. Times are in milliseconds, on the clock of the boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredLock {
    /// The next larger key that has a row.
    pub(super) next: Option<Vec<u8>>,
    /// Which boot the times are of; none in the first row, which has none.
    pub(super) boot: Option<String>,
    pub(super) token: Option<Vec<u8>>,
    pub(super) token_ends: i64,
    /// What was left of the lease when it was written last.
    pub(super) life: i64,
    pub(super) number: Option<i64>,
    pub(super) number_ends: i64,
    pub(super) queue_ends: i64,
}

impl StoredLock {
    /// Reads the columns in the order of [`COLUMNS`]; `None` when they are not what was written
    /// under this key.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Option<(Vec<u8>, Self)>> {
        let key: Vec<u8> = row.get(0)?;
        let record = Self {
            next: row.get(1)?,
            boot: row.get(2)?,
            token: row.get(3)?,
            token_ends: row.get(4)?,
            life: row.get(5)?,
            number: row.get(6)?,
            number_ends: row.get(7)?,
            queue_ends: row.get(8)?,
        };
        let is_sound = row.get::<_, i64>(9)? == record.sum(&key);
        Ok(is_sound.then_some((key, record)))
    }

    /// The checksum of the key and everything beside it.
    pub(super) fn sum(&self, key: &[u8]) -> i64 {
        let Self { next, boot, token, number, token_ends, life, number_ends, queue_ends } = self;
        let number = number.map(i64::to_le_bytes);
        let times = [token_ends, life, number_ends, queue_ends].map(|time| time.to_le_bytes());
        sum([
            Some(key),
            next.as_deref(),
            boot.as_deref().map(str::as_bytes),
            token.as_deref(),
            number.as_ref().map(<[u8; 8]>::as_slice),
            Some(times.as_flattened()),
        ])
    }
}

/// A checksum that the change of any byte changes. An absent field differs from an empty one, and
/// bytes cannot move from one field to another unnoticed.
pub(super) fn sum<'a>(fields: impl IntoIterator<Item = Option<&'a [u8]>>) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    for field in fields {
        // Longer than any field.
        let length = field.map_or(u64::MAX, |field| field.len() as u64);
        hasher.update(&length.to_le_bytes());
        hasher.update(field.unwrap_or_default());
    }
    i64::from(hasher.finalize())
}

/// All of them, in order.
pub(super) const COLUMNS: &str = "key, next, boot, token, token_ends_ms, life_ms, number, \
                                  number_ends_ms, queue_ends_ms, sum";
