//! Waiting or trying once, and what waiting costs.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, scale, unique_key};

use crate::{
    LIMIT, ms,
    queue::line::{Line, figure},
    secs,
    servers::{any, scripts},
};

/// Reproduces: "if it is busy, skip" was meant, and all five ran one after the other.
#[test]
fn callers_that_wait_run_in_turn_and_callers_that_try_do_not() {
    let key = unique_key("waiting");
    let clients = [(); 5].map(|()| Client::connect(&any().url()).unwrap());
    let (start, ran, inside) = (Barrier::new(5), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                start.wait();
                let guard = client.lock(&key).ttl(secs(600)).acquire_within(LIMIT).unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                ran.fetch_add(1, Ordering::SeqCst);
                thread::sleep(ms(10));
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().unwrap();
            });
        }
    });
    assert_eq!(ran.swap(0, Ordering::SeqCst), 5, "each one waits for its turn");
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                start.wait();
                let guard = client.lock(&key).ttl(secs(600)).try_acquire().unwrap();
                ran.fetch_add(guard.is_some().into(), Ordering::SeqCst);
                // The job is longer than the others' tries.
                start.wait();
            });
        }
    });
    assert_eq!(ran.into_inner(), 1, "the others skip");
}

/// Reproduces: one holds, two hundred wait, and the server is busy with their asking.
#[test]
fn two_hundred_waiters_send_nothing() {
    let server = Server::start(ServerKind::Valkey91);
    let clients = [(); 8].map(|()| Client::connect(&server.url()).unwrap());
    let guard = clients[0].lock("k").ttl(secs(600)).acquire().unwrap();
    let mut line = Line::before(clients[0].lock("k"));
    for who in 0..200 {
        line.join(&clients[who % clients.len()].lock("k").ttl(secs(600)));
    }
    let before = scripts(&server);
    thread::sleep(secs(scale(1, 25) as u64));
    let asked = scripts(&server) - before;
    assert_eq!(asked, 0, "they know that the lease is long");
    let began = Instant::now();
    guard.release().unwrap();
    figure("200 wait: the first after the release", line.next().at - began, ms(250));
    line.was_served_in_order();
    figure("200 wait: the last after the release", began.elapsed(), secs(5));
}
