//! Waiters that have nothing to do but to wait: what they cost, and that they miss nothing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tenure::{AcquireError, Client, LockGuard, NodeErrorKind, Wait};
use tenure_core::{LockKey, script};
use tenure_testkit::{Server, ServerKind, eventually, unique_key};
use tokio::{sync::Mutex, task::JoinHandle};

use crate::{LIMIT, ms, ran_out, secs};

type Waiter = JoinHandle<Result<LockGuard, AcquireError>>;

const WAITERS: usize = 200;

/// Short, so that a test lasts for many of them; long enough for a busy machine to renew in time.
const TTL: Duration = Duration::from_secs(2);

/// A server, its holder's client, and the client that waits.
struct Scene {
    server: Server,
    holder: Client,
    client: Client,
}

impl Scene {
    fn new() -> Self {
        let server = Server::start(ServerKind::Redis70);
        let connect = || Client::connect(&server.url()).unwrap();
        Self { holder: connect(), client: connect(), server }
    }

    async fn hold(&self, key: &str) -> LockGuard {
        self.holder.lock(key).ttl(TTL).acquire().await.unwrap()
    }

    /// One more waiter is in the queue, behind all others.
    async fn wait(&self, key: &str) -> Waiter {
        let before = self.members(key).len();
        let lock = self.client.lock(key).ttl(TTL).wait(Wait::Within(LIMIT));
        let waiter = tokio::spawn(async move { lock.acquire().await });
        while self.members(key).len() == before {
            tokio::time::sleep(ms(1)).await;
        }
        waiter
    }

    /// Members of the queue with their tickets.
    fn members(&self, key: &str) -> Vec<(String, String)> {
        let reply = self.server.cmd(&[&b"ZRANGE"[..], &queue(key), b"0", b"-1", b"WITHSCORES"]);
        let text = |value: &tenure_testkit::Value| value.text().unwrap().to_owned();
        reply.array().chunks(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
    }
}

fn queue(key: &str) -> Vec<u8> {
    LockKey::new(key).unwrap().queue()
}

/// How many calls of a script the lines of MONITOR show, but for the first of a connection.
fn calls(lines: &[String], name: &str) -> usize {
    let sha1 = script::ALL.iter().find(|script| script.name == name).unwrap().sha1;
    lines.iter().filter(|line| line.contains("EVALSHA") && line.contains(sha1)).count()
}

async fn served(waiter: Waiter) {
    let guard = waiter.await.unwrap().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn many_waiters_at_one_lock_cost_little_and_are_served_in_order() {
    let scene = Scene::new();
    let key = unique_key("one-lock");
    let held = scene.hold(&key).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for number in 0..WAITERS {
        let lock = scene.client.lock(&key).ttl(secs(30));
        let order = Arc::clone(&order);
        waiters.push(tokio::spawn(async move {
            let guard = lock.acquire().await.unwrap();
            order.lock().await.push(number);
            guard.release().await.unwrap();
        }));
    }
    while scene.members(&key).len() < WAITERS {
        tokio::time::sleep(ms(1)).await;
    }
    let mut monitor = scene.server.monitor();
    tokio::time::sleep(TTL * 3).await;
    let lines = monitor.so_far();
    let (polls, acquires) = (calls(&lines, "poll"), calls(&lines, "acquire"));
    assert!(polls > 0, "the first in the queue has polled");
    assert!(polls < WAITERS, "{polls} polls in three TTLs");
    assert_eq!(acquires, 0, "nobody had anything to ask for");

    held.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert_eq!(*order.lock().await, (0..WAITERS).collect::<Vec<_>>());
    assert!(scene.members(&key).is_empty());
}

/// Each is the first of its queue, so each polls once per TTL.
#[tokio::test]
async fn waiters_at_many_locks_are_polled_together() {
    let scene = Scene::new();
    let keys: Vec<_> = (0..WAITERS).map(|_| unique_key("many-locks")).collect();
    let (mut held, mut waiters) = (Vec::new(), Vec::new());
    for key in &keys {
        held.push(scene.hold(key).await);
    }
    for key in &keys {
        waiters.push(scene.wait(key).await);
    }
    let mut monitor = scene.server.monitor();
    tokio::time::sleep(TTL * 3).await;
    let lines = monitor.so_far();
    let polled = |key: &String| {
        let rank = format!("\"ZRANK\" \"{}\"", String::from_utf8_lossy(&queue(key)));
        lines.iter().filter(|line| line.contains(&rank)).count()
    };
    let (polls, acquires) = (calls(&lines, "poll"), calls(&lines, "acquire"));
    assert!(keys.iter().all(|key| polled(key) >= 2), "each was polled for in each TTL");
    assert!(polls < WAITERS, "{polls} calls in three TTLs");
    assert_eq!(acquires, 0, "nobody had anything to ask for");
    for (guard, waiter) in held.into_iter().zip(waiters) {
        guard.release().await.unwrap();
        served(waiter).await;
    }
}

#[tokio::test]
async fn a_waiter_whose_entry_was_deleted_returns_to_its_place() {
    let scene = Scene::new();
    let key = unique_key("entry-deleted");
    let held = scene.hold(&key).await;
    let first = scene.wait(&key).await;
    let second = scene.wait(&key).await;
    let before = scene.members(&key);
    let gone = scene.server.cmd(&[b"ZREM", &queue(&key)[..], before[0].0.as_bytes()]);
    assert_eq!(gone.int(), 1);
    eventually(LIMIT, "both stand where they stood", || scene.members(&key) == before);
    held.release().await.unwrap();
    let first = first.await.unwrap().unwrap();
    assert!(!second.is_finished());
    first.release().await.unwrap();
    served(second).await;
}

#[tokio::test]
async fn a_deleted_queue_is_restored_in_order() {
    let scene = Scene::new();
    let key = unique_key("queue-deleted");
    let held = scene.hold(&key).await;
    let waiters = [scene.wait(&key).await, scene.wait(&key).await];
    let before = scene.members(&key);
    assert_eq!(scene.server.cmd(&[b"DEL", &queue(&key)[..]]).int(), 1);
    eventually(LIMIT, "both stand where they stood", || scene.members(&key) == before);
    held.release().await.unwrap();
    for waiter in waiters {
        served(waiter).await;
    }
}

/// They are polled for in one call, since they wait for equally long.
#[tokio::test]
async fn a_broken_lock_affects_no_waiter_of_another() {
    let scene = Scene::new();
    let keys = ["a", "b", "c"].map(unique_key);
    let (mut held, mut waiters) = (Vec::new(), Vec::new());
    for key in &keys {
        held.push(scene.hold(key).await);
        waiters.push(scene.wait(key).await);
    }
    // In one step: it would not be long without a queue.
    assert_eq!(scene.server.cmd(&["HSET", "other", "x", "y"]).int(), 1);
    assert!(scene.server.cmd(&[b"RENAME", &b"other"[..], &queue(&keys[1])]).is_ok());
    let Err(AcquireError::NoQuorum(none)) = waiters.remove(1).await.unwrap() else {
        panic!("nobody can wait there");
    };
    assert_eq!(none.failed[0].kind(), NodeErrorKind::QueueUnusable);
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    drop(held.remove(1));
    for (guard, waiter) in held.into_iter().zip(waiters) {
        guard.release().await.unwrap();
        served(waiter).await;
    }
}

/// Its release sends no message, and nothing is acquired until there is something to acquire.
#[tokio::test]
async fn a_foreign_holder_is_polled_about_ten_times_a_second() {
    let scene = Scene::new();
    let key = unique_key("foreign");
    assert!(scene.server.cmd(&["SET", &key, "theirs"]).is_ok());
    let waiter = scene.wait(&key).await;
    let mut monitor = scene.server.monitor();
    tokio::time::sleep(secs(2)).await;
    let lines = monitor.so_far();
    let (polls, acquires) = (calls(&lines, "poll"), calls(&lines, "acquire"));
    // A pause is never below 50 ms, less what a look may go along earlier.
    assert!((1..=43).contains(&polls), "{polls} polls in 2 s");
    assert_eq!(acquires, 0);
    assert_eq!(scene.server.cmd(&["DEL", &key]).int(), 1);
    served(waiter).await;
}

/// There is no message, and no poll is due: the last try is still made.
#[tokio::test]
async fn the_last_try_of_a_parked_waiter_acquires_a_free_lock() {
    let scene = Scene::new();
    let key = unique_key("last-try");
    let _held = scene.holder.lock(&key).ttl(secs(60)).acquire().await.unwrap();
    let lock = scene.client.lock(&key);
    let waiter = tokio::spawn(async move { lock.acquire_within(secs(1)).await });
    while scene.members(&key).is_empty() {
        tokio::time::sleep(ms(1)).await;
    }
    assert_eq!(scene.server.cmd(&["DEL", &key]).int(), 1);
    waiter.await.unwrap().unwrap().release().await.unwrap();
}

/// Ten thousand of them are a matter of megabytes.
#[test]
fn the_future_of_a_caller_that_waits_is_small() {
    let client = Client::connect("memory://").unwrap();
    let lock = client.lock("k");
    let (acquire, within) = (lock.acquire(), lock.acquire_within(LIMIT));
    let sizes = [size_of_val(&lock), size_of_val(&acquire), size_of_val(&within)];
    assert!(sizes.iter().all(|size| *size <= 512), "{sizes:?}");
}

/// It has been polled for before, and the look that would be next is after the end of its wait.
#[tokio::test]
async fn the_wait_of_a_parked_waiter_ends_at_its_deadline() {
    let scene = Scene::new();
    let key = unique_key("deadline");
    let _held = scene.hold(&key).await;
    let mut monitor = scene.server.monitor();
    let began = Instant::now();
    let lock = scene.client.lock(&key);
    let wait = tokio::time::timeout(LIMIT, lock.acquire_within(TTL * 3 / 2));
    let result = wait.await.expect("it ends");
    assert!(ran_out(&result), "{result:?}");
    assert!(began.elapsed() >= TTL * 3 / 2);
    eventually(LIMIT, "it leaves the queue", || scene.members(&key).is_empty());
    assert!(monitor.so_far().iter().any(|line| line.contains("ZRANK")), "it was polled for");
}
