//! A runtime with a paused clock moves it as soon as all tasks are idle: a call to a table in
//! memory must not look idle while its engine works.

use std::time::Duration;

use tenure::{Client, Lock};
use tokio::time::{Instant, sleep, timeout};

/// Of the runtime's clock: it never passes by itself.
const HOUR: Duration = Duration::from_secs(3_600);

/// A fresh name each time: named tables are the process's.
fn lock(client: &str, key: &str) -> Lock {
    Client::connect(client).unwrap().lock(key).ttl(HOUR * 24)
}

#[tokio::test(start_paused = true)]
async fn no_time_out_around_a_call_to_memory_fires_under_a_paused_clock() {
    let began = Instant::now();
    for address in ["memory://", "memory://paused-a,memory://paused-b,memory://paused-c"] {
        let lock = lock(address, "calls");
        for round in 0..50 {
            let guard = timeout(HOUR, lock.acquire()).await.expect("acquire").unwrap();
            timeout(HOUR, guard.extend(HOUR * 24)).await.expect("extend").unwrap();
            timeout(HOUR, guard.revalidate()).await.expect("revalidate").unwrap();
            assert!(timeout(HOUR, lock.try_acquire()).await.expect("try").unwrap().is_none());
            assert!(timeout(HOUR, lock.inspect()).await.expect("inspect").unwrap().held.is_some());
            if round % 2 == 0 {
                timeout(HOUR, guard.release()).await.expect("release").unwrap();
            } else {
                drop(guard);
            }
            timeout(HOUR, lock.run(async |_| ())).await.expect("run").unwrap();
            drop(timeout(HOUR, lock.steal()).await.expect("steal").unwrap());
        }
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// The holder works for a minute of the runtime's time, and hands over to another client.
#[tokio::test(start_paused = true)]
async fn a_waiter_in_memory_gets_the_lock_when_its_holder_releases() {
    let began = Instant::now();
    for round in 0..50 {
        let address = format!("memory://paused-{round}");
        let (first, second) = (lock(&address, "work"), lock(&address, "work"));
        let guard = first.acquire().await.unwrap();
        let waiter = tokio::spawn(async move { timeout(HOUR, second.acquire()).await });
        sleep(HOUR / 60).await;
        drop(guard);
        waiter.await.unwrap().expect("no time-out").unwrap().release().await.unwrap();
    }
    assert_eq!(began.elapsed(), HOUR / 60 * 50);
}

/// Many tasks, one engine.
#[tokio::test(start_paused = true)]
async fn many_waiters_in_memory_are_served_before_their_time_outs() {
    let lock = lock("memory://", "crowd");
    let work = |lock: Lock| async move {
        timeout(HOUR, lock.run(async |_| sleep(HOUR / 100).await)).await.expect("served").unwrap();
    };
    let tasks: Vec<_> = (0..50).map(|_| tokio::spawn(work(lock.clone()))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}
