//! The checksums of rows that a test has changed: what is in a store, byte for byte.

use rusqlite::{Connection, params};

type Times = [i64; 4];

/// Gives the row of a key the checksum of what stands there now.
pub(super) fn row(sql: &Connection, key: &[u8]) {
    let select = "SELECT next, CAST(boot AS BLOB), token, number, token_ends_ms, life_ms, \
                  number_ends_ms, queue_ends_ms FROM locks WHERE key = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        let bytes = |index| row.get::<_, Option<Vec<u8>>>(index);
        let times: Times = [row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?];
        Ok((bytes(0)?, bytes(1)?, bytes(2)?, row.get::<_, Option<i64>>(3)?, times))
    };
    let (next, boot, token, number, times) = sql.query_row(select, [key], read).unwrap();
    let sum = sum(&[
        Some(key.to_vec()),
        next,
        boot,
        token,
        number.map(|number| number.to_le_bytes().to_vec()),
        Some(times.map(i64::to_le_bytes).concat()),
    ]);
    let update = "UPDATE locks SET sum = ?2 WHERE key = ?1";
    assert_eq!(sql.execute(update, params![key, sum]).unwrap(), 1);
}

/// CRC-32 over each field: its length in eight bytes, or as many of all ones where there is none,
/// and its bytes.
fn sum(fields: &[Option<Vec<u8>>]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    for field in fields {
        let length = field.as_ref().map_or(u64::MAX, |field| field.len() as u64);
        hasher.update(&length.to_le_bytes());
        hasher.update(field.as_deref().unwrap_or_default());
    }
    i64::from(hasher.finalize())
}
