//! Servers that forget the scripts they were sent.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use tenure::blocking;
use tenure_testkit::{scale, unique_key};

use super::{TTL, connect, is_free, private};

/// Between two ops: the next one is sent in full, and nobody notices.
#[test]
fn a_script_flush_between_ops_goes_unnoticed() {
    let server = private().start();
    let client = connect(&server.url());
    let flush = || assert!(server.cmd(&["SCRIPT", "FLUSH"]).is_ok());
    for _ in 0..10 {
        let key = unique_key("flushed");
        let guard = client.lock(&key).ttl(TTL * 100).acquire().unwrap();
        flush();
        guard.extend(TTL * 200).unwrap();
        flush();
        assert!(client.lock(&key).try_acquire().unwrap().is_none());
        flush();
        assert!(client.lock(&key).inspect().unwrap().held.is_some());
        flush();
        guard.release().unwrap();
        assert!(is_free(&server, &key));
    }
}

/// Under many ops that are on their way at once: each is done, and none twice.
#[test]
fn a_script_flush_under_pipelined_ops_goes_unnoticed() {
    let server = private().start();
    let client = connect(&server.url());
    let working = AtomicUsize::new(WORKERS);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let worked = catch_unwind(AssertUnwindSafe(|| work(&client)));
                // Whatever came of it, so that the flushing ends.
                working.fetch_sub(1, Ordering::Relaxed);
                worked.unwrap_or_else(|panic| resume_unwind(panic));
            });
        }
        let mut raw = server.raw();
        while working.load(Ordering::Relaxed) > 0 {
            assert!(raw.cmd(&["SCRIPT", "FLUSH"]).is_ok());
        }
    });
    let keys = usize::try_from(server.cmd(&["DBSIZE"]).int());
    assert_eq!(keys, Ok(WORKERS), "each has only its number");
}

const WORKERS: usize = 32;

fn work(client: &blocking::Client) {
    let key = unique_key("flushed-under");
    let mut last = None;
    for _ in 0..scale(10, 1_000) {
        let guard = client.lock(&key).ttl(TTL * 100).acquire().unwrap();
        assert!(Some(guard.fencing_token()) > last);
        last = Some(guard.fencing_token());
        guard.extend(TTL * 200).unwrap();
        guard.release().unwrap();
    }
}
