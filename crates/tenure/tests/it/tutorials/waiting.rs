//! A hand-written lock that spins every 200 ms, against callers that wait in our queue.

use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use tenure::blocking::Client;
use tenure_testkit::unique_key;

use crate::{
    LIMIT, ms,
    queue::line::{Line, nothing_is_left},
    secs,
    servers::any,
};

/// `SET NX PX`, every 200 ms, and compare-and-delete on request.
fn spin(key: &str, inside: &AtomicBool, has: &SyncSender<()>, let_go: &Receiver<()>) {
    const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                           return redis.call('DEL', KEYS[1]) end return 0";
    let token = "6f1ed002ab5595859014ebf0951522d9";
    loop {
        if any().cmd(&["SET", key, token, "NX", "PX", "60000"]).is_ok() {
            assert!(!inside.swap(true, Ordering::SeqCst), "it came in while we held");
            has.send(()).unwrap();
            let go_on = let_go.recv().is_ok();
            assert!(inside.swap(false, Ordering::SeqCst));
            assert_eq!(any().cmd(&["EVAL", RELEASE, "1", key, token]).int(), 1, "taken from it");
            if !go_on {
                return;
            }
        }
        thread::sleep(ms(200));
    }
}

/// As holder it is waited for, in order. As contender it gets its turn when nobody of ours waits.
#[test]
fn a_hand_written_spin_lock_and_our_queue_exclude_each_other() {
    let key = unique_key("spinner");
    let client = Client::connect(&any().url()).unwrap();
    let inside = AtomicBool::new(false);
    let ((has, had), (lets_it_go, let_go)) = (sync_channel(1), sync_channel(1));
    let mut lets_it_go = Some(lets_it_go);
    thread::scope(|scope| {
        let (key, inside) = (&key, &inside);
        scope.spawn(move || spin(key, inside, &has, &let_go));
        for round in 0..3 {
            had.recv_timeout(LIMIT).expect("it gets its turn");
            let mut line = Line::before(client.lock(key));
            (0..3).for_each(|_| line.join(&client.lock(key).ttl(secs(600))));
            assert!(inside.load(Ordering::SeqCst), "we came in while it held");
            if round < 2 {
                lets_it_go.as_ref().unwrap().send(()).unwrap();
            } else {
                lets_it_go.take();
            }
            line.was_served_in_order();
        }
    });
    tenure_testkit::eventually(LIMIT, "nothing is left", || nothing_is_left(any(), &key));
}
