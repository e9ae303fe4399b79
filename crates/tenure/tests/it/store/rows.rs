//! What becomes of rows when they have ended.

use super::{Store, connect, seal};

/// Reproduces: a hundred names are locked once each, and their numbers end. Commands come and go,
/// and none of them lives for long.
#[test]
fn expired_rows_are_removed_even_by_clients_of_two_operations() {
    let store = Store::new();
    let client = connect(&store.file());
    let names: Vec<_> = (0..100).map(|number| format!("name {number}")).collect();
    for name in &names {
        client.lock(name).acquire().unwrap().release().unwrap();
    }
    let sql = store.sql();
    for name in &names {
        let key = name.as_bytes();
        let end = "UPDATE locks SET number_ends_ms = 1, token_ends_ms = 0 WHERE key = ?1";
        assert_eq!(sql.execute(end, [key]).unwrap(), 1);
        seal::row(&sql, key);
    }
    for _ in 0..50 {
        store.lock("other").acquire().unwrap().release().unwrap();
    }
    let left: i64 = sql
        .query_row("SELECT count(*) FROM locks WHERE key LIKE 'name%'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
    // What is left is in order: a name that was swept is new.
    client.lock("name 7").try_acquire().unwrap().expect("nobody holds it").release().unwrap();
    assert!(store.is_sound());
}
