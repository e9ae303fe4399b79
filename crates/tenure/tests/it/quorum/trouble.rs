//! Contention while nodes hang, are cut off, and are down.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use tenure::{AcquireError, ReleaseError, blocking::Client};
use tenure_testkit::{eventually, raised_at_the_end, scale, unique_key};

use super::Nodes;
use crate::{LIMIT, secs, servers};

/// Two of five nodes are in trouble at any time, in turn: one is stopped, and the network of
/// another swallows everything. Three must agree, so no vote may be lost.
#[test]
fn while_a_minority_hangs_in_rotation_holds_never_overlap_and_all_succeed() {
    const CONTENDERS: usize = 4;
    let (nodes, key) = (Nodes::start(5), unique_key("rotation"));
    let proxies = nodes.proxies();
    let urls = servers::behind(&proxies);
    let (busy, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (holds, last) = (AtomicUsize::new(0), Mutex::new(None));
    thread::scope(|scope| {
        for _ in 0..CONTENDERS {
            scope.spawn(|| {
                let lock = Client::connect(&urls).unwrap().lock(&key).ttl(secs(10));
                while !is_over.load(Ordering::SeqCst) {
                    let guard = lock.acquire_within(LIMIT * 3).unwrap();
                    assert!(!busy.swap(true, Ordering::SeqCst), "two hold it");
                    let number = Some(guard.fencing_token());
                    let before = std::mem::replace(&mut *last.lock().unwrap(), number);
                    assert!(before < number, "{number:?} after {before:?}");
                    busy.store(false, Ordering::SeqCst);
                    // With those in trouble that were, a majority may not answer in time.
                    let released = guard.release();
                    let is_well = matches!(released, Ok(()) | Err(ReleaseError::Unconfirmed(_)));
                    assert!(is_well, "{released:?}");
                    holds.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let _over = raised_at_the_end(&is_over);
        for round in 0..scale(5, 500) {
            let before = holds.load(Ordering::SeqCst);
            let frozen = nodes.0[round % 5].freeze_process();
            proxies[(round + 2) % 5].black_hole();
            eventually(LIMIT * 3, "they still get it", || {
                holds.load(Ordering::SeqCst) > before + CONTENDERS
            });
            proxies[(round + 2) % 5].heal();
            drop(frozen);
        }
    });
    nodes.becomes_free(&key);
}

/// So many are down, or hung, that there is no quorum; a waiter gets that error when its wait ends.
#[test]
fn without_a_majority_the_wait_ends_in_time_and_nothing_is_left() {
    let (nodes, key) = (Nodes::start(5), unique_key("majority"));
    let lock = nodes.client().lock(&key).ttl(secs(20));
    lock.acquire().unwrap().release().unwrap();
    for _ in 0..scale(1, 30) {
        let frozen = nodes.0[0].freeze_process();
        nodes.0[1].kill();
        nodes.0[2].kill();
        let began = Instant::now();
        let failed = lock.acquire_within(secs(1));
        let took = began.elapsed();
        let Err(AcquireError::NoQuorum(none)) = failed else { panic!("{failed:?}") };
        assert!(none.granted <= 2 && none.needed == 3 && none.failed.len() >= 3, "{none:?}");
        // The last try has a quarter of a second; the rest is for a busy machine.
        assert!(took >= secs(1) && took < secs(4), "{took:?}");
        drop(frozen);
        nodes.0[1].start_again();
        nodes.0[2].start_again();
        lock.acquire_within(LIMIT).unwrap().release().unwrap();
        nodes.becomes_free(&key);
    }
}
