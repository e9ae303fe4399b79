//! A tokio task has a budget of polls, which only its return to the runtime renews. Callers block
//! inside a task nevertheless: the number of calls before that must not matter.

use std::{sync::mpsc::channel, thread, time::Duration};

use tenure::Client;
use tenure_testkit::{scale, unique_key};
use tokio::runtime::{Builder, Runtime};

use super::{executors::block_on, ms, shared};

/// A budget is 128 polls of tokio's own futures. The soak prints the time of each kind.
fn cycles() -> usize {
    scale(2_000, 100_000)
}

/// Runs it on a thread of its own, and fails when it hangs.
fn ends(what: &str, test: impl FnOnce() + Send + 'static) {
    let (done, ended) = channel();
    let began = std::time::Instant::now();
    thread::spawn(move || {
        test();
        done.send(()).expect("the test waits");
    });
    let limit = Duration::from_secs(scale(60, 900) as u64);
    ended.recv_timeout(limit).unwrap_or_else(|error| panic!("{what}: {error}"));
    #[expect(clippy::print_stdout, reason = "the soak's figures")]
    {
        println!("{what}: {} cycles in {:?}", cycles(), began.elapsed());
    }
}

fn multi() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn single() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// At a table in memory, and a part of them at a server.
fn blocking_cycles() {
    let server = shared().url();
    for (address, cycles) in [("memory://", cycles()), (server.as_str(), cycles() / 10)] {
        let lock = super::connect(address).lock(unique_key("budget"));
        for _ in 0..cycles {
            lock.acquire().unwrap().release().unwrap();
        }
    }
}

async fn async_cycles() {
    let lock = Client::connect("memory://").unwrap().lock("budget");
    for _ in 0..cycles() / 2 {
        lock.acquire().await.unwrap().release().await.unwrap();
        lock.run(async |_| ()).await.unwrap();
    }
}

/// Uses up what the task may poll before it returns to the runtime.
async fn spend_the_budget() {
    let (more, mut messages) = tokio::sync::mpsc::unbounded_channel();
    std::future::poll_fn(|cx| {
        while tokio::task::coop::has_budget_remaining() {
            more.send(()).unwrap();
            assert!(messages.poll_recv(cx).is_ready());
        }
        std::task::Poll::Ready(())
    })
    .await;
}

#[test]
fn any_number_of_blocking_calls_in_a_main_with_many_threads() {
    ends("main, multi-thread", || multi().block_on(async { blocking_cycles() }));
}

#[test]
fn any_number_of_blocking_calls_in_a_main_with_one_thread() {
    ends("main, current-thread", || single().block_on(async { blocking_cycles() }));
}

#[test]
fn any_number_of_blocking_calls_in_a_spawned_task() {
    let spawned = async { tokio::spawn(async { blocking_cycles() }).await.unwrap() };
    ends("spawn, multi-thread", || multi().block_on(spawned));
}

#[test]
fn any_number_of_blocking_calls_in_a_spawned_task_of_one_thread() {
    let spawned = async { tokio::spawn(async { blocking_cycles() }).await.unwrap() };
    ends("spawn, current-thread", || single().block_on(spawned));
}

#[test]
fn any_number_of_blocking_calls_in_a_local_set() {
    let local = async { tokio::task::spawn_local(async { blocking_cycles() }).await.unwrap() };
    ends("local set", || tokio::task::LocalSet::new().block_on(&single(), local));
}

#[test]
fn any_number_of_blocking_calls_in_spawn_blocking() {
    let meant = async { tokio::task::spawn_blocking(blocking_cycles).await.unwrap() };
    ends("spawn_blocking", || multi().block_on(meant));
    let in_place = async { tokio::task::block_in_place(blocking_cycles) };
    ends("block_in_place", || multi().block_on(in_place));
}

#[test]
fn any_number_of_blocking_calls_on_a_thread_and_in_smol() {
    ends("a thread", blocking_cycles);
    ends("smol, block_on", || smol::block_on(async { blocking_cycles() }));
    ends("smol, spawn", || smol::block_on(smol::spawn(async { blocking_cycles() })));
}

#[test]
fn any_number_of_async_calls_under_each_executor() {
    ends("async, multi-thread", || multi().block_on(async_cycles()));
    ends("async, current-thread", || single().block_on(async_cycles()));
    ends("async, smol", || smol::block_on(async_cycles()));
    ends("async, a block_on of its own", || block_on(async_cycles()));
}

/// `block_on` of smol, of the `futures` crate, or by hand: none of them knows of the task's budget.
#[test]
fn another_executor_may_block_inside_a_task() {
    ends("smol in a task", || multi().block_on(async { smol::block_on(async_cycles()) }));
    ends("by hand in a task", || single().block_on(async { block_on(async_cycles()) }));
}

#[test]
fn a_task_that_has_spent_its_budget_elsewhere_may_block() {
    ends("a spent budget", || {
        single().block_on(async {
            spend_the_budget().await;
            blocking_cycles();
        });
    });
}

/// The loss of a lease reaches a task that never runs out of other work.
#[test]
fn a_busy_task_is_notified_of_a_loss() {
    ends("a busy task", || {
        single().block_on(async {
            let lock = Client::connect("memory://").unwrap().lock("busy").ttl(ms(500));
            let guard = lock.acquire().await.unwrap();
            let mut lost = std::pin::pin!(guard.lost());
            let mut thief = None;
            loop {
                spend_the_budget().await;
                if smol::future::poll_once(lost.as_mut()).await.is_some() {
                    return;
                }
                if thief.is_none() {
                    thief = Some(block_on(lock.steal()).unwrap());
                }
            }
        });
    });
}
