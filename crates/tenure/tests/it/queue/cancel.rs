//! An acquisition that waits, given up at each of its awaits, while each of the server's replies
//! comes, comes late, never comes, or ends with its connection.

use std::{thread, time::Duration};

use smol::{block_on, future::poll_once};
use tenure::{AcquireError, Client, blocking};
use tenure_testkit::{Gated, Proxy, eventually, scale, unique_key};

use super::line::{Acquiring, Line, channels, nothing_is_left};
use crate::{LIMIT, ms, secs, servers::any};

/// Long, so that a waiter that is served was not served because it has ended.
const TTL: Duration = secs(600);

/// What the server says to a waiter that is served, in this order.
const SAYS: [&str; 7] = [
    "it is subscribed",
    "its own message",
    "the proof",
    "its place in the queue",
    "it has the lock",
    "the confirmation",
    "the release",
];
const HAS_THE_LOCK: usize = 4;
const RELEASE: usize = 6;

/// When the caller gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gives {
    /// While it waits for the reply.
    Up,
    /// It does not.
    Not,
}

#[test]
fn the_next_waiter_is_served_whatever_reply_a_cancelled_one_loses() {
    each_reply(Gives::Up);
}

#[test]
fn all_waiters_are_served_whatever_reply_one_of_them_loses() {
    each_reply(Gives::Not);
}

fn each_reply(gives: Gives) {
    for fate in [Gated::Held, Gated::Swallowed, Gated::Cut] {
        thread::scope(|scope| {
            let ran: Vec<_> = (0..SAYS.len())
                .map(|reply| scope.spawn(move || Case { reply, fate, gives }.run()))
                .collect();
            for (says, ran) in SAYS.iter().zip(ran) {
                assert!(ran.join().is_ok(), "{says} is {fate:?}, and it gives {gives:?}");
            }
        });
    }
}

struct Case {
    reply: usize,
    fate: Gated,
    gives: Gives,
}

impl Case {
    fn run(&self) {
        let key = unique_key("gate");
        let proxy = Proxy::to(any());
        let [holder, next] = [(); 2].map(|()| blocking::Client::connect(&any().url()).unwrap());
        let guard = holder.lock(&key).ttl(TTL).acquire().unwrap();
        let client = Client::connect(&proxy.url()).unwrap();
        let lock = client.lock(&key).ttl(TTL);
        // It is greeted before, so that the next reply is the first of those above.
        block_on(lock.inspect()).unwrap();
        // On a busy machine the waiter polls meanwhile, and that reply must not be counted for it.
        if self.reply < RELEASE {
            proxy.gate_replies(self.reply, self.fate);
        }
        let mut acquiring: Acquiring =
            Box::pin(async move { lock.acquire_within(LIMIT * 3).await });
        assert!(block_on(poll_once(&mut acquiring)).is_none());
        let mut line = Line::before(holder.lock(&key));
        eventually(LIMIT, "it is in the queue", || line.waiting() == 1);
        if self.reply < HAS_THE_LOCK {
            eventually(LIMIT, "the gate is met", || proxy.gate_was_met());
        }
        if self.reply < HAS_THE_LOCK && self.gives == Gives::Up {
            drop(acquiring);
            proxy.heal();
            // At once, and not only when it is its turn.
            eventually(LIMIT, "its place is given up", || line.waiting() == 0);
            line.join(&next.lock(&key).ttl(TTL));
            guard.release().unwrap();
        } else {
            line.join(&next.lock(&key).ttl(TTL));
            guard.release().unwrap();
            self.go_on(acquiring, &proxy);
        }
        assert_eq!(line.next().who, 0);
        line.was_served_in_order();
        block_on(client.close()).unwrap();
        eventually(LIMIT, "nothing is left", || nothing_is_left(any(), &key));
    }

    /// It is its turn.
    fn go_on(&self, mut acquiring: Acquiring, proxy: &Proxy) {
        if self.reply < RELEASE {
            eventually(LIMIT, "the gate is met", || proxy.gate_was_met());
            if self.gives == Gives::Up {
                drop(acquiring);
                proxy.heal();
                return;
            }
            proxy.heal();
            block_on(block_on(&mut acquiring).unwrap().release()).unwrap();
            return;
        }
        let guard = block_on(&mut acquiring).unwrap();
        proxy.gate_replies(0, self.fate);
        let mut releasing = Box::pin(guard.release());
        let released = block_on(poll_once(&mut releasing));
        assert!(released.is_none(), "{released:?}");
        eventually(LIMIT, "the gate is met", || proxy.gate_was_met());
        if self.gives == Gives::Up {
            drop(releasing);
            proxy.heal();
        } else {
            proxy.heal();
            // Its reply may be lost, and then it says so; the next is served in either case.
            let released = block_on(releasing);
            assert!(released.is_ok() || self.fate != Gated::Held, "{released:?}");
        }
    }
}

/// On a slow network, at random moments: waiters that come and go again never delay
/// the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_dropped_at_any_moment_blocks_nobody() {
    let proxy = Proxy::to(any());
    proxy.delay(ms(2));
    let fickle = Client::connect(&proxy.url()).unwrap();
    let steady = Client::connect(&any().url()).unwrap();
    let key = unique_key("fickle");
    let (fickle_lock, lock) = (fickle.lock(&key).ttl(TTL), steady.lock(&key).ttl(TTL));
    for round in 0..scale(60, 2_000) as u64 {
        let guard = lock.acquire_within(LIMIT).await.unwrap();
        // Around the turn itself, which is 4 ms after the wait has begun.
        let patience = Duration::from_micros(round * 337 % 14_000);
        let released = async {
            tokio::time::sleep(Duration::from_micros(round * 211 % 10_000)).await;
            guard.release().await.unwrap();
        };
        let dropped = tokio::time::timeout(patience, fickle_lock.acquire());
        let (_, dropped) = tokio::join!(released, dropped);
        drop(dropped);
    }
    lock.acquire_within(LIMIT).await.unwrap().release().await.unwrap();
    fickle.close().await.unwrap();
    eventually(LIMIT, "nothing is left", || nothing_is_left(any(), &key));
    assert!(channels(any(), &key).is_empty());
}

/// A client that is closed while many of its callers wait takes them all out of the queue.
#[test]
fn a_closed_client_removes_its_waiters_from_the_queue() {
    let key = unique_key("closed");
    let [holder, closed, next] = [(); 3].map(|()| blocking::Client::connect(&any().url()).unwrap());
    let guard = holder.lock(&key).ttl(TTL).acquire().unwrap();
    let lock = closed.lock(&key).ttl(TTL);
    let ahead: Vec<_> = (0..10)
        .map(|_| {
            let lock = lock.clone();
            thread::spawn(move || lock.acquire())
        })
        .collect();
    let mut line = Line::before(holder.lock(&key));
    eventually(LIMIT, "they are in the queue", || line.waiting() == 10);
    line.join(&next.lock(&key).ttl(TTL));
    closed.close().unwrap();
    for ahead in ahead {
        let ended = ahead.join().unwrap();
        assert!(matches!(ended, Err(AcquireError::EngineStopped { .. })), "{ended:?}");
    }
    eventually(LIMIT, "they are gone", || line.waiting() == 1);
    guard.release().unwrap();
    line.was_served_in_order();
    eventually(LIMIT, "nothing is left", || nothing_is_left(any(), &key));
}
