//! What becomes of rows: over a boot, and when they have ended.

use std::time::Duration;

use rusqlite::params;
use tenure::{LossReason, ReleaseError};

use super::{Store, connect};

/// Reproduces: a host reboots while a lock is held; its row says it is held still.
#[test]
fn another_boot_gives_every_lease_up_and_keeps_its_number() {
    let store = Store::new();
    let guard = store.lock("k").ttl(Duration::from_secs(3_600)).acquire().unwrap();
    let before = guard.fencing_token();
    let reboot = "UPDATE locks SET boot = 'another boot', number = number + 1000000000";
    store.sql().execute(reboot, []).unwrap();
    let next = store.lock("k").try_acquire().unwrap().expect("the lease is void");
    assert!(next.fencing_token().get() > before.get() + 1_000_000_000);
    let taken = matches!(guard.release(), Err(ReleaseError::NotHeld(LossReason::Taken { .. })));
    assert!(taken, "the earlier holder is told");
}

/// Reproduces: a thousand names are locked once each, and their numbers end.
#[test]
fn rows_that_have_ended_are_swept() {
    let store = Store::new();
    let client = connect(&store.file());
    client.lock("first").acquire().unwrap().release().unwrap();
    let sql = store.sql();
    sql.execute(
        "UPDATE locks SET number_ends_ms = 1, token_ends_ms = 0, queue_ends_ms = 0",
        params![],
    )
    .unwrap();
    for _ in 0..500 {
        client.lock("other").acquire().unwrap().release().unwrap();
    }
    let left: i64 = sql
        .query_row("SELECT count(*) FROM locks WHERE key = ?1", [&b"first"[..]], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}
