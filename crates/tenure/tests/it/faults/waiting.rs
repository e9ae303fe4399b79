//! Waiters are served, with or without a notification.

use std::{
    thread,
    time::{Duration, Instant},
};

use tenure::blocking::Client;
use tenure_testkit::{Proxy, Server, ServerKind, scale, unique_key};

use super::{LIMIT, TTL, connect, ms, private, shared};
use crate::{
    queue::line::{Line, figure},
    servers::scripts,
};

const LONG: Duration = Duration::from_secs(600);

/// The hand-over itself: from one hold to the next, with fifty waiters.
#[test]
fn fifty_waiters_are_served_one_after_the_other() {
    let clients: Vec<_> = (0..5).map(|_| connect(&shared().url())).collect();
    let key = unique_key("waiting");
    let mut gaps = Vec::new();
    for _ in 0..scale(1, 20) {
        let guard = clients[0].lock(&key).ttl(LONG).acquire().unwrap();
        let mut line = Line::before(clients[0].lock(&key));
        (0..50).for_each(|who| line.join(&clients[who % 5].lock(&key).ttl(LONG)));
        let began = Instant::now();
        guard.release().unwrap();
        let served = line.all();
        assert!(served.is_sorted_by(|a, b| a.who < b.who), "{served:?}");
        let mut last = began;
        for served in served {
            gaps.push(served.at - last);
            last = served.at;
        }
    }
    gaps.sort();
    figure("50 wait: hand-over, p50", gaps[gaps.len() / 2], ms(2));
    figure("50 wait: hand-over, p99", gaps[gaps.len() * 99 / 100], ms(10));
}

/// The network drops all messages to channels: no waiter is notified, and none relies on
/// that. Nothing expires here in this time: a waiter that is served has polled.
#[test]
fn waiters_poll_where_messages_are_dropped() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let proxy = Proxy::to(&server);
        proxy.drop_messages();
        let holder = connect(&server.url());
        let waiter = connect(&proxy.url());
        let guard = holder.lock("k").ttl(LONG).acquire().unwrap();
        let mut line = Line::before(holder.lock("k"));
        line.ask(&waiter.lock("k").ttl(LONG));
        let before = scripts(&server);
        tenure_testkit::eventually(LIMIT, "it looks", || scripts(&server) > before + 5);
        let began = Instant::now();
        guard.release().unwrap();
        figure("no messages: the next after the release", line.next().at - began, ms(300));
    }
}

/// Expiry in the background of a server with many keys may be late; the waiter's own timer is not.
#[test]
fn the_lock_of_a_dead_holder_is_acquired_among_many_expiring_keys() {
    let server = private().start();
    let fill = "for i = 1, ARGV[1] do redis.call('SET', 'other-' .. i, '', 'PX', 600000 + i) end";
    let keys = scale(10_000, 100_000).to_string();
    server.cmd(&["EVAL", fill, "0", &keys]);
    for _ in 0..scale(1, 20) {
        let [holder, waiter] = [(); 2].map(|()| connect(&server.url()));
        let began = Instant::now();
        let guard = holder.lock("k").ttl(TTL).acquire().unwrap();
        let mut line = Line::before(holder.lock("k"));
        line.join(&waiter.lock("k").ttl(LONG));
        // Not renewed any more, like that of a process that has died.
        drop(guard.detach());
        let took = line.next().at - began;
        assert!(took >= TTL, "taken from its holder after {took:?}");
        figure("dead holder, many keys: the next", took, TTL + ms(50));
    }
}

/// Whatever happens between the join and the release, the release is not missed. The TTL that the
/// waiter read is far longer than this test.
#[test]
fn a_missed_wake_up_only_delays_a_waiter() {
    let server = private().start();
    let proxy = Proxy::to(&server);
    let [holder, waiter] = [server.url(), proxy.url()].map(|url| connect(&url));
    let mut longest = Duration::ZERO;
    for round in 0..scale(120, 10_000) as u64 {
        let guard = acquire(&holder);
        let mut line = Line::before(holder.lock("k"));
        line.join(&waiter.lock("k").ttl(LONG));
        let trouble = || match round % 6 {
            0 => proxy.cut(),
            1 => proxy.half_open(),
            2 => drop(server.cmd(&["CLIENT", "KILL", "TYPE", "pubsub"])),
            3 => drop(server.cmd(&["CLIENT", "PAUSE", "20", "ALL"])),
            4 => drop(server.cmd(&["SCRIPT", "FLUSH"])),
            _ => proxy.delay_replies(ms(5)),
        };
        let began = Instant::now();
        thread::scope(|scope| {
            let wait = Duration::from_micros(round * 173 % 3_000);
            scope.spawn(move || {
                thread::sleep(wait);
                // A holder that was cut off, too, says so, and goes on releasing.
                drop(guard.release());
            });
            thread::sleep(Duration::from_micros(round * 119 % 3_000));
            trouble();
        });
        longest = longest.max(line.next().at - began);
        proxy.heal();
    }
    // Half open, or granted while it was away: a provisional grant.
    figure("trouble between join and release: the longest wait", longest, ms(1_250));
}

fn acquire(client: &Client) -> tenure::blocking::LockGuard {
    client.lock("k").ttl(LONG).acquire_within(LIMIT).unwrap()
}
