//! Callers that stop waiting.

use std::{future::Future, pin::pin, task::Context, task::Poll, task::Waker};

use tenure::Client;
use tenure_testkit::{Proxy, eventually, scale, unique_key};

use crate::{
    LIMIT, ms, secs,
    servers::{any, exists},
};

/// Reproduces: a request is cancelled while its lock is acquired, or held, or released.
/// Its lock stays until the TTL, since the release runs on the cancelled context.
#[test]
fn a_cancelled_caller_leaves_no_key() {
    let proxy = Proxy::to(any());
    proxy.delay(ms(1));
    let client = Client::connect(&proxy.url()).unwrap();
    for round in 0..scale(60, 1_000) {
        let key = unique_key("unwanted");
        let lock = client.lock(&key).ttl(secs(600));
        let run = async {
            let guard = lock.acquire().await.unwrap();
            guard.extend(secs(900)).await.unwrap();
            guard.release().await.unwrap();
        };
        abandon_after(run, round % 6);
        eventually(LIMIT, "no key is left", || !exists(any(), &key));
    }
    smol::block_on(client.close()).unwrap();
}

/// Polls a future so many times, each when it asks to be polled, and drops it.
fn abandon_after(future: impl Future<Output = ()>, polls: usize) {
    let mut future = pin!(future);
    let waker = Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    for _ in 0..polls {
        if future.as_mut().poll(&mut cx) == Poll::Ready(()) {
            return;
        }
        std::thread::park_timeout(ms(50));
    }
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}
