//! Whichever executor polls the futures, and whatever blocks its thread: the engine has its own.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use tenure::{Client, LossReason, Wait};
use tenure_testkit::unique_key;

use super::{LIMIT, connect, is_free, shared};

/// Short enough to be held for three of it; long enough for a busy machine to renew in time.
const TTL: Duration = Duration::from_millis(1_500);

/// Every async function, once.
async fn a_day_in_a_life() {
    let client = Client::connect(&shared().url()).unwrap();
    let key = unique_key("executor");
    let lock = client.lock(&key).ttl(TTL).wait(Wait::Within(LIMIT));
    let output = lock.run(async |lease| lease.fencing_token()).await.unwrap();
    let guard = lock.acquire().await.unwrap();
    assert!(guard.fencing_token() > output);
    assert!(lock.try_acquire().await.unwrap().is_none());
    guard.extend(TTL * 2).await.unwrap();
    let token = guard.detach();
    let guard = lock.resume(token).await.unwrap().expect("still held");
    let thief = lock.steal().await.unwrap();
    assert!(matches!(guard.lost().await, LossReason::Taken { .. }));
    assert!(lock.force_release().await.unwrap().is_some());
    assert!(thief.release().await.is_err());
    assert!(lock.inspect().await.unwrap().held.is_none());
    drop(guard);
    client.close().await.unwrap();
    assert!(is_free(shared(), &key));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_with_many_threads() {
    a_day_in_a_life().await;
    tokio::spawn(a_day_in_a_life()).await.unwrap();
}

#[tokio::test]
async fn tokio_with_one_thread() {
    a_day_in_a_life().await;
}

#[test]
fn smol() {
    smol::block_on(a_day_in_a_life());
    smol::block_on(smol::spawn(a_day_in_a_life()));
}

#[test]
fn a_thread_with_a_block_on_of_its_own() {
    block_on(a_day_in_a_life());
}

/// A foreign one: it gives nothing back to a runtime around it.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// The runtime's only thread is blocked for three TTLs, and the lease lives on.
#[tokio::test]
async fn a_task_that_blocks_its_executor_does_not_lose_the_lease() {
    let client = Client::connect(&shared().url()).unwrap();
    let key = unique_key("blocked");
    let guard = client.lock(&key).ttl(TTL).acquire().await.unwrap();
    thread::sleep(3 * TTL);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    assert!(guard.valid_for().is_some());
    let value = shared().cmd(&["GET", &key]);
    assert_eq!(value.bytes(), Some(guard.token().as_bytes()));
    guard.release().await.unwrap();
}

/// tokio's own blocking calls panic in here.
#[test]
fn blocking_calls_may_be_made_inside_a_runtime() {
    let multi = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build();
    for runtime in [multi.unwrap(), single.unwrap()] {
        runtime.block_on(async { block_in_here() });
        runtime.block_on(async { tokio::spawn(async { block_in_here() }).await.unwrap() });
    }
}

fn block_in_here() {
    let client = connect(&shared().url());
    let key = unique_key("blocking");
    let lock = client.lock(&key).ttl(TTL).wait(Wait::Within(LIMIT));
    lock.run(|lease| assert!(lease.ensure_held().is_ok())).unwrap();
    let guard = lock.acquire().unwrap();
    guard.extend(TTL * 2).unwrap();
    assert!(lock.steal().is_ok());
    assert!(matches!(guard.lost(), LossReason::Taken { .. } | LossReason::Gone));
    drop(guard);
    client.close().unwrap();
    assert!(is_free(shared(), &key));
}
