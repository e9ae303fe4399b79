//! A store in which a byte has changed.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use tenure::{AcquireError, NodeErrorKind, blocking::Lock};
use tenure_testkit::scale;

use super::{Store, connect};

/// As many rows as there were when seven of 1 500 changes made a second holder.
const ROWS: u64 = 21;

/// Longer than the soak: in a copy nobody renews.
const TTL: Duration = Duration::from_secs(24 * 3_600);

/// How many of them are held.
const HELD: u64 = 10;

/// A change that SQLite cannot see: of a key, of a token, of the tree that leads to them.
#[test]
fn no_changed_byte_of_a_store_gives_away_a_held_lock() {
    let store = Store::new();
    let client = connect(&store.file());
    let key = |number: u64| format!("lock number {number}");
    let guards: Vec<_> =
        (0..ROWS).map(|number| client.lock(key(number)).ttl(TTL).acquire().unwrap()).collect();
    let (held, free) = guards.split_at(usize::try_from(HELD).unwrap());
    assert_eq!(held.len() + free.len(), guards.len());
    let mut guards = guards.into_iter();
    let held: Vec<_> = guards.by_ref().take(usize::try_from(HELD).unwrap()).collect();
    guards.for_each(|guard| guard.release().unwrap());
    let sound = copy_of(&store);
    assert!(sound.len() >= 4 * 4_096, "{} bytes", sound.len());

    let changes = scale(400, sound.len() * PATTERNS.len());
    let (mut refused, mut granted) = (0, 0);
    for change in 0..changes {
        // A stride that is prime meets each byte with each pattern once in the soak.
        let step = change * if changes < sound.len() { 7_919 } else { 1 };
        let (at, pattern) = (step % sound.len(), PATTERNS[step / sound.len() % PATTERNS.len()]);
        let mut bytes = sound.clone();
        bytes[at] ^= pattern;
        let other = Store::new();
        fs::write(other.file(), &bytes).unwrap();
        fs::set_permissions(other.file(), fs::Permissions::from_mode(0o600)).unwrap();
        let client = connect(&other.file());
        for number in 0..HELD {
            let lock = client.lock(key(number));
            let got = try_once(&lock);
            assert_ne!(got, Some(true), "two hold {}: byte {at} ^ {pattern:#x}", key(number));
            refused += usize::from(got.is_none());
        }
        // New rows must not cover those that are held.
        for number in HELD..ROWS + 3 {
            granted += usize::from(try_once(&client.lock(key(number))) == Some(true));
        }
        for number in 0..HELD {
            let got = try_once(&client.lock(key(number)));
            assert_ne!(got, Some(true), "two hold {} now: byte {at} ^ {pattern:#x}", key(number));
        }
    }
    assert!(refused > 0 && granted > 0, "{refused} refused, {granted} granted");
    println!("{changes} changes: {refused} tries refused");
    drop(held);
}

/// One bit, all of a byte, and two that make a number a small one.
const PATTERNS: [u8; 4] = [0x01, 0xff, 0x80, 0x10];

/// Whether the lock was granted; `None` when the store is refused.
fn try_once(lock: &Lock) -> Option<bool> {
    match lock.try_acquire() {
        Ok(None) => Some(false),
        Ok(Some(guard)) => {
            _ = guard.detach();
            Some(true)
        }
        Err(AcquireError::NoQuorum(error)) => {
            let kind = error.failed[0].kind();
            assert!(!matches!(kind, NodeErrorKind::Busy | NodeErrorKind::TimedOut), "{error:?}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// As SQLite has it, so that no lock of this process on the file is lost.
fn copy_of(store: &Store) -> Vec<u8> {
    let copy = store.directory.path().join("copy.db");
    store.sql().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    let bytes = fs::read(&copy).unwrap();
    fs::remove_file(Path::new(&copy)).unwrap();
    bytes
}

/// What is reported, and what to do about it.
#[test]
fn a_damaged_row_is_refused_like_a_damaged_file_with_what_to_do() {
    let damages = [
        "UPDATE locks SET token = x'00' WHERE key = x'6b'",
        "UPDATE locks SET token_ends_ms = 1 WHERE key = x'6b'",
        "UPDATE locks SET key = x'6c' WHERE key = x'6b'",
        "DELETE FROM locks WHERE key = x'6b'",
        "DROP TABLE locks",
        "DROP TABLE queue",
    ];
    for damage in damages {
        let store = Store::new();
        let _guard = store.lock("k").acquire().unwrap();
        store.sql().execute(damage, []).unwrap();
        let error = match store.lock("k").acquire_within(super::super::ms(300)) {
            Err(AcquireError::NoQuorum(mut error)) => error.failed.remove(0),
            other => panic!("{damage}: {other:?}"),
        };
        assert_eq!(error.kind(), NodeErrorKind::UnfitStore, "{damage}: {error:?}");
        let said = std::error::Error::source(&error).expect("a cause").to_string();
        let cure = format!("then remove {}", store.setting());
        assert!(said.contains("damaged") && said.contains(&cure), "{damage}: {said}");
    }
}
