//! Callers that wait forever, or get the lock by luck.

use std::{
    sync::{Mutex, PoisonError},
    thread,
};

use tenure::blocking::Client;
use tenure_testkit::{Proxy, Server, ServerKind, TempDir, scale, unique_key};

use crate::{
    LIMIT, ms,
    queue::line::{self, Line, nothing_is_left},
    secs,
    servers::{any, scripts},
};

/// Reproduces: a free lock, one spike of latency, and the acquisition never ends.
#[test]
fn a_latency_spike_does_not_block_a_free_lock() {
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    for pause in ["10", "40", "60", "200"] {
        for warm in [false, true] {
            let key = unique_key("waiting");
            let lock = client.lock(&key).ttl(secs(600));
            if warm {
                lock.acquire().unwrap().release().unwrap();
            }
            assert!(server.cmd(&["CLIENT", "PAUSE", pause, "ALL"]).is_ok());
            lock.acquire_within(LIMIT).unwrap().release().unwrap();
        }
    }
}

/// Reproduces: the server is away for a second while callers are parked; it comes back with the
/// lock free, and they never wake up.
#[test]
fn a_waiter_outlives_an_outage() {
    let server = Server::start(ServerKind::Valkey81);
    let proxy = Proxy::to(&server);
    let holder = Client::connect(&server.url()).unwrap();
    let waiter = Client::connect(&proxy.url()).unwrap();
    for server_dies in [false, true] {
        let guard = holder.lock("k").ttl(secs(600)).acquire_within(LIMIT).unwrap();
        let mut line = Line::before(holder.lock("k"));
        (0..5).for_each(|_| line.join(&waiter.lock("k").ttl(secs(600))));
        if server_dies {
            server.kill();
            thread::sleep(ms(scale(350, 3_300) as u64));
            server.start_again();
            drop(guard);
        } else {
            proxy.refuse();
            proxy.cut();
            // It is free, and no waiter is notified.
            guard.release().unwrap();
            thread::sleep(ms(scale(350, 3_300) as u64));
            proxy.heal();
        }
        assert_eq!(line.all().len(), 5);
    }
}

/// Reproduces: with 30 ms to the server and back a free lock is never had, and the client asks for
/// it 38 times a second.
#[test]
fn a_distant_server_gets_as_many_requests_as_a_near_one() {
    for delay in [15, 40] {
        let server = Server::start(ServerKind::Redis70);
        let proxy = Proxy::to(&server);
        let client = Client::connect(&proxy.url()).unwrap();
        let near = Client::connect(&server.url()).unwrap();
        proxy.delay(ms(delay));
        let lock = client.lock("k").ttl(secs(600));
        lock.acquire_within(LIMIT).unwrap().release().unwrap();
        // The check that messages arrive, the acquisition, and the release.
        assert!(scripts(&server) <= 3, "{}", scripts(&server));
        let guard = near.lock("k").ttl(secs(600)).acquire().unwrap();
        let mut line = Line::before(near.lock("k"));
        line.join(&lock);
        let before = scripts(&server);
        guard.release().unwrap();
        line.was_served_in_order();
        // Two releases, and a confirmation between them.
        let asked = scripts(&server) - before;
        assert_eq!(asked, 3, "{delay} ms");
    }
}

/// Reproduces: the head of the queue is dead and the lock free, nobody gets it, and live waiters
/// ask thousands of times a second.
#[test]
fn a_dead_head_makes_no_waiter_spin() {
    let directory = TempDir::new();
    let server = Server::start(ServerKind::Redis70);
    let client = Client::connect(&server.url()).unwrap();
    let guard = client.lock("k").ttl(secs(2)).acquire().unwrap();
    let mut line = Line::before(client.lock("k"));
    let mut dead = line::start(&server.url(), "k", secs(600), &directory.path().join("log"));
    line.join_from(&mut dead, "dead");
    (0..3).for_each(|_| line.join(&client.lock("k").ttl(secs(600))));
    drop(dead);
    // The holder dies, too: the lock becomes free, and no waiter is notified.
    drop(guard.detach());
    let before = scripts(&server);
    assert_eq!(line.next().who, 0);
    line.was_served_in_order();
    // Each looks once or twice, confirms and releases.
    let asked = scripts(&server) - before;
    assert!(asked <= 3 * 4 + 4, "{asked}");
    assert!(nothing_is_left(&server, "k"));
}

/// Reproduces: a clock that is six minutes off removes waiters from the queue.
#[test]
fn a_clock_step_removes_no_waiter_from_the_queue() {
    let server = Server::builder(ServerKind::Redis70).shim().start();
    let client = Client::connect(&server.url()).unwrap();
    let guard = client.lock("k").ttl(secs(3_600)).acquire().unwrap();
    let mut line = Line::before(client.lock("k"));
    for step_ms in [360_000, -720_000, 360_000, 0] {
        (0..2).for_each(|_| line.join(&client.lock("k").ttl(secs(3_600))));
        server.clock().step_ms(step_ms);
    }
    assert_eq!(line.waiting(), 8);
    guard.release().unwrap();
    line.was_served_in_order();
}

/// Reproduces: each release wakes all fifty, who all ask.
#[test]
fn a_release_wakes_one_waiter_however_many_there_are() {
    let server = Server::start(ServerKind::Valkey91);
    let clients: Vec<_> = (0..50).map(|_| Client::connect(&server.url()).unwrap()).collect();
    let guard = clients[0].lock("k").ttl(secs(600)).acquire().unwrap();
    let mut line = Line::before(clients[0].lock("k"));
    clients.iter().for_each(|client| line.join(&client.lock("k").ttl(secs(600))));
    let before = scripts(&server);
    guard.release().unwrap();
    line.was_served_in_order();
    // Each confirms and releases; it has joined before.
    let asked = scripts(&server) - before;
    assert_eq!(asked, 1 + 50 * 2);
}

/// Reproduces: fifty compete, and some get the lock fourteen times as often as others.
#[test]
fn competing_callers_get_fair_shares() {
    let clients: Vec<_> = (0..10).map(|_| Client::connect(&any().url()).unwrap()).collect();
    let key = unique_key("waiting");
    let guard = clients[0].lock(&key).ttl(secs(600)).acquire().unwrap();
    let (look, holds) = (clients[0].lock(&key), scale(400, 20_000));
    let order = Mutex::new(Vec::new());
    let share = |who: usize| {
        let lock = clients[who].lock(&key).ttl(secs(600));
        loop {
            let guard = lock.acquire_within(LIMIT).unwrap();
            let mut order = order.lock().unwrap_or_else(PoisonError::into_inner);
            if order.len() == holds {
                return;
            }
            order.push(who);
            drop(order);
            guard.release().unwrap();
        }
    };
    thread::scope(|scope| {
        for who in 0..clients.len() {
            scope.spawn(move || share(who));
        }
        tenure_testkit::eventually(LIMIT, "all wait", || {
            look.inspect().unwrap().waiting == Some(10)
        });
        guard.release().unwrap();
    });
    let order = order.into_inner().unwrap();
    let shares: Vec<_> =
        (0..clients.len()).map(|who| order.iter().filter(|had| **had == who).count()).collect();
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    // A thread that the machine keeps waiting misses a turn now and then.
    assert!(least * 3 >= most * 2, "{shares:?}");
}
