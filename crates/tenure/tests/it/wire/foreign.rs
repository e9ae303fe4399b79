//! Holders that other libraries made: they exclude us, we exclude them, and nothing of theirs is
//! ever touched.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
};

use tenure::{AcquireError, Holder, TtlLeft, blocking::Client};
use tenure_testkit::{ServerKind, Value, eventually, raised_at_the_end, unique_key};

use super::put;
use crate::{
    LIMIT, ms, ran_out, secs,
    servers::{any, exists, get, pttl, shared},
};

/// What tutorials and most libraries do, by hand.
const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

fn set_if_absent(key: &str, value: &str) -> Value {
    any().cmd(&["SET", key, value, "NX", "PX", "60000"])
}

fn compare_and_delete(key: &str, value: &str) -> i64 {
    any().cmd(&["EVAL", COMPARE_AND_DELETE, "1", key, value]).int()
}

#[test]
fn a_hand_written_lock_and_ours_exclude_each_other() {
    let key = unique_key("by-hand");
    let client = Client::connect(&any().url()).unwrap();
    let lock = client.lock(&key);

    let guard = lock.acquire().unwrap();
    assert!(set_if_absent(&key, "theirs").is_nil());
    assert_eq!(compare_and_delete(&key, "theirs"), 0);
    guard.release().unwrap();

    assert!(set_if_absent(&key, "theirs").is_ok());
    assert!(lock.try_acquire().unwrap().is_none());
    assert!(ran_out(&lock.acquire_within(ms(80))));
    let missed = lock.acquire_within(ms(0));
    let Err(AcquireError::TimedOut { holder, .. }) = missed else { panic!("{missed:?}") };
    assert_eq!(holder, Holder::Foreign(b"theirs"[..].into()));
    assert_eq!(get(any(), &key).text(), Some("theirs"));
    assert_eq!(compare_and_delete(&key, "theirs"), 1);
    lock.try_acquire().unwrap().expect("free again").release().unwrap();
}

#[test]
fn a_foreign_holder_is_waited_for() {
    let key = unique_key("waited-for");
    let client = Client::connect(&any().url()).unwrap();
    assert!(set_if_absent(&key, "theirs").is_ok());
    let lock = client.lock(&key);
    let waiter = thread::spawn(move || lock.acquire_within(secs(30)));
    thread::sleep(ms(60));
    assert!(!waiter.is_finished());
    assert_eq!(compare_and_delete(&key, "theirs"), 1);
    waiter.join().unwrap().unwrap().release().unwrap();
}

/// redis-py with no time-out and walrus hold without a TTL: there is no end to sleep until.
#[test]
fn a_holder_without_a_ttl_is_waited_for_and_left_alone() {
    let key = unique_key("no-ttl");
    let client = Client::connect(&any().url()).unwrap();
    let value = "5d2f3ab0a2c311eebe560242ac120002";
    assert!(any().cmd(&["SET", &key, value, "NX"]).is_ok());
    let lock = client.lock(&key);
    let held = lock.inspect().unwrap().held.unwrap();
    assert_eq!(held.ttl_left, TtlLeft::Never);
    assert_eq!(held.holder, Holder::Foreign(value.as_bytes().into()));
    assert!(ran_out(&lock.acquire_within(ms(60))));
    assert_eq!((get(any(), &key).text(), pttl(any(), &key)), (Some(value), -1));
    let waiter = thread::spawn(move || lock.acquire_within(secs(30)));
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
    waiter.join().unwrap().unwrap().release().unwrap();
}

/// The string of another library may look like anything, and is shown escaped.
#[test]
fn foreign_values_of_any_bytes_are_reported_unchanged() {
    let key = unique_key("bytes");
    let client = Client::connect(&any().url()).unwrap();
    let walrus: Vec<u8> = (0..32).map(|n| n * 8 + 7).collect();
    let no_label = format!("{}@a b", "0".repeat(32));
    for value in [&walrus[..], b"", b"@", b"\r\n\0\x1b[31m", no_label.as_bytes()] {
        assert!(any().cmd(&[b"SET", key.as_bytes(), value, b"PX", b"60000"]).is_ok());
        let lock = client.lock(&key);
        let holder = lock.inspect().unwrap().held.unwrap().holder;
        assert_eq!(holder, Holder::Foreign(value.into()));
        assert!(!holder.to_string().contains(char::is_control), "{holder}");
        assert!(lock.try_acquire().unwrap().is_none());
        assert_eq!(any().cmd(&["GET", &key]).bytes(), Some(value));
    }
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
}

/// A sorted set by symfony, a hash by redisson: no lock of ours, whichever library wrote it.
#[test]
fn values_of_other_types_are_left_alone_and_nobody_waits_for_them() {
    let client = Client::connect(&any().url()).unwrap();
    for (kind, words) in [
        ("zset", &["ZADD", "K", "1", "token", "2", "__write__"][..]),
        ("hash", &["HSET", "K", "uuid:1", "1"]),
        ("list", &["RPUSH", "K", "x"]),
        ("set", &["SADD", "K", "x"]),
    ] {
        let key = unique_key("types");
        put(words, &key);
        assert_eq!(any().cmd(&["PEXPIRE", &key, "60000"]).int(), 1);
        let before = any().cmd(&["DUMP", &key]);
        let lock = client.lock(&key);
        let held = lock.inspect().unwrap().held.unwrap();
        assert_eq!(held.holder, Holder::ForeignType(kind.into()));
        assert!(held.holder.is_foreign());
        // It is no lock, however long one waits, so nobody waits.
        for refused in [lock.try_acquire().map(drop), lock.acquire().map(drop)] {
            let found = Holder::ForeignType(kind.into());
            assert!(
                matches!(&refused, Err(AcquireError::NotALock { found: is, .. }) if *is == found),
                "{kind}: {refused:?}"
            );
        }
        assert!(lock.force_release().is_err(), "{kind}");
        assert_eq!(any().cmd(&["DUMP", &key]), before, "{kind} was touched");
        assert!(pttl(any(), &key) > 30_000, "{kind}");
        // By force, when the user says so.
        let lock = lock.overwrite_data(true);
        assert_eq!(lock.force_release().unwrap(), Some(Holder::ForeignType(kind.into())));
        assert!(!exists(any(), &key));
    }
}

/// A holder that is replaced by another's value finds out, and leaves that value alone.
#[test]
fn our_holder_leaves_a_replaced_key_alone() {
    let client = Client::connect(&any().url()).unwrap();
    for words in [&["SET", "K", "theirs"][..], &["ZADD", "K", "1", "x"]] {
        let key = unique_key("replaced");
        let guard = client.lock(&key).acquire().unwrap();
        assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
        put(words, &key);
        let before = any().cmd(&["DUMP", &key]);
        assert!(guard.extend(secs(20)).is_err());
        assert!(guard.release().is_err());
        assert_eq!((any().cmd(&["DUMP", &key]), pttl(any(), &key)), (before, -1));
        assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
    }
}

/// Three waiters of ours hand a lock around, and one of another library polls for it. Returns how
/// often it found the lock free in so many looks, and how often it was handed over meanwhile.
fn polled_beside_a_queue(yield_to_pollers: Option<u32>, looks: u32) -> (u32, u32) {
    let key = unique_key("poller");
    let client = Client::connect(&any().url()).unwrap();
    let lock = match yield_to_pollers {
        Some(hand_overs) => client.lock(&key).yield_to_pollers(hand_overs),
        None => client.lock(&key),
    };
    let (over, hand_overs) = (AtomicBool::new(false), AtomicU32::new(0));
    let first = lock.acquire().unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            // Each over a connection of its own, as in processes of their own.
            let url = any().url();
            let (key, over, hand_overs) = (&key, &over, &hand_overs);
            scope.spawn(move || {
                let client = Client::connect(&url).unwrap();
                let mut lock = client.lock(key);
                if let Some(hand_overs) = yield_to_pollers {
                    lock = lock.yield_to_pollers(hand_overs);
                }
                while !over.load(Ordering::SeqCst) {
                    lock.acquire().unwrap().release().unwrap();
                    hand_overs.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // A waiter then still gets it.
        let _over = raised_at_the_end(&over);
        eventually(LIMIT, "three wait", || lock.inspect().unwrap().waiting == Some(3));
        first.release().unwrap();
        let mut won = 0;
        for _ in 0..looks {
            if set_if_absent(&key, "theirs").is_ok() {
                won += 1;
                assert_eq!(compare_and_delete(&key, "theirs"), 1);
            }
            // As pollers do.
            thread::sleep(ms(100));
        }
        (won, hand_overs.load(Ordering::Relaxed))
    })
}

/// The limit that is documented: a poller never finds the lock free while there is a queue.
#[test]
fn a_polling_library_starves_beside_our_queue() {
    let (won, hand_overs) = polled_beside_a_queue(None, 10);
    assert_eq!(won, 0);
    assert!(hand_overs > 10, "the lock was handed over only {hand_overs} times");
}

#[test]
fn a_polling_library_gets_a_turn_when_the_queue_yields() {
    let (won, hand_overs) = polled_beside_a_queue(Some(1), 20);
    assert!(won > 0, "never found free in 20 looks");
    assert!(hand_overs > 0, "the queue got nothing");
}

/// Left free, and nobody takes it: the next in the queue does.
#[test]
fn a_lock_left_free_for_pollers_goes_to_the_next_waiter() {
    for kind in ServerKind::ALL {
        let key = unique_key("left-free");
        let client = Client::connect(&shared(kind).url()).unwrap();
        let lock = client.lock(&key).yield_to_pollers(1);
        let guard = lock.acquire().unwrap();
        let waiter = Client::connect(&shared(kind).url()).unwrap().lock(&key);
        let mut monitor = shared(kind).monitor();
        let waiter = thread::spawn(move || waiter.acquire());
        eventually(LIMIT, "one waits", || lock.inspect().unwrap().waiting == Some(1));
        guard.release().unwrap();
        let next = waiter.join().unwrap().unwrap();
        let seen = monitor.so_far();
        let deleted = format!("\"DEL\" \"{key}\"");
        assert!(seen.iter().any(|line| line.contains(&deleted)), "{kind}: it was not left free");
        next.release().unwrap();
        assert!(!exists(shared(kind), &key), "{kind}");
        // Nobody waits: nothing is left free for anybody.
        lock.acquire().unwrap().release().unwrap();
        assert!(!exists(shared(kind), &format!("{{{key}}}:tenure.queue")), "{kind}");
    }
}
