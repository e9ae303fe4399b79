//! Dead waiters that are still in the queue: nobody waits behind them for longer
//! than one provisional grant, however many they are.
//!
//! The holder's TTL is far longer than a test may take, so no waiter is served by its end.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenure::blocking::Client;
use tenure_testkit::{Proxy, TempDir, eventually, scale, unique_key};

use super::line::{self, Line, channels, figure, granted, nothing_is_left, queue};
use crate::{LIMIT, ms, secs, servers::any};

const TTL: Duration = secs(600);
const GRANT_TTL: Duration = secs(1);

/// Than ten provisional grants, or than any timer of a waiter that read this TTL.
const MUCH_LESS: Duration = secs(6);

/// Entries of killed waiters that hold up the queue for minutes. The server knows of its end:
/// not even a provisional grant is lost.
#[test]
fn a_killed_head_costs_nothing() {
    let directory = TempDir::new();
    let key = unique_key("killed");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
    let mut line = Line::before(client.lock(&key));
    let mut dead = line::start(&any().url(), &key, TTL, &directory.path().join("log"));
    line.join_from(&mut dead, "dead");
    line.join(&client.lock(&key).label("next"));
    let channel = channels(any(), &key).remove(0);
    drop(dead);
    eventually(LIMIT, "its connection is closed", || {
        any().cmd(&["PUBSUB", "NUMSUB", &channel]).array()[1].int() == 0
    });
    let mut monitor = any().monitor();
    let began = Instant::now();
    guard.release().unwrap();
    figure("killed head: the next after the release", line.next().at - began, ms(100));
    assert_eq!(granted(&mut monitor, &key)[0], "next", "granted to the dead");
    line.was_served_in_order();
    eventually(LIMIT, "nothing is left", || nothing_is_left(any(), &key));
}

/// A frozen process looks alive. All its waiters together cost one provisional grant, and one
/// grant.
#[test]
fn a_stopped_process_costs_one_provisional_grant_however_many_its_waiters() {
    let directory = TempDir::new();
    let log = directory.path().join("log");
    let key = unique_key("stopped");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
    let mut line = Line::before(client.lock(&key));
    let mut stopped = line::start(&any().url(), &key, TTL, &log);
    (0..10).for_each(|_| line.join_from(&mut stopped, "back"));
    line.join(&client.lock(&key).label("next"));
    stopped.stop();
    let mut monitor = any().monitor();
    let began = Instant::now();
    guard.release().unwrap();
    let took = line.next().at - began;
    figure("stopped head with ten waiters: the next", took, GRANT_TTL + ms(250));
    assert!(took < MUCH_LESS, "{took:?}");
    assert_eq!(
        granted(&mut monitor, &key)[..2],
        ["process", "next"],
        "more than one provisional grant"
    );
    // It comes back, and notices that all of its waiters may have been passed over.
    stopped.signal(Signal::CONT);
    let served = || std::fs::read_to_string(&log).map_or(0, |log| log.lines().count());
    eventually(LIMIT, "all of them are served after all", || served() == 10);
    line.was_served_in_order();
}

/// The network is gone, and the server has not noticed: one provisional grant.
#[test]
fn a_head_behind_a_dead_network_costs_one_provisional_grant() {
    let key = unique_key("power-loss");
    let proxy = Proxy::to(any());
    let [holder, next] = [(); 2].map(|()| Client::connect(&any().url()).unwrap());
    let dead = Client::connect(&proxy.url()).unwrap();
    let guard = holder.lock(&key).ttl(TTL).acquire().unwrap();
    let mut line = Line::before(holder.lock(&key));
    line.join(&dead.lock(&key).ttl(TTL).label("dead"));
    line.join(&next.lock(&key).ttl(TTL).label("next"));
    proxy.black_hole();
    let mut monitor = any().monitor();
    let began = Instant::now();
    guard.release().unwrap();
    let served = line.next();
    let took = served.at - began;
    figure("head without a network: the next", took, GRANT_TTL + ms(250));
    assert!(took < MUCH_LESS, "{took:?}");
    assert_eq!(served.who, 1);
    assert_eq!(granted(&mut monitor, &key), ["dead", "next"]);
    proxy.heal();
    assert_eq!(line.next().who, 0, "it is served when it is back");
    drop(line);
}

/// The connection ends, and the process lives: it comes back to where it stood.
#[test]
fn a_head_whose_connection_ends_keeps_its_place() {
    let proxy = Proxy::to(any());
    let [holder, next] = [(); 2].map(|()| Client::connect(&any().url()).unwrap());
    let head = Client::connect(&proxy.url()).unwrap();
    for _ in 0..scale(5, 100) {
        let key = unique_key("reconnects");
        let guard = holder.lock(&key).ttl(TTL).acquire().unwrap();
        let mut line = Line::before(holder.lock(&key));
        line.join(&head.lock(&key).ttl(TTL));
        (0..3).for_each(|_| line.join(&next.lock(&key).ttl(TTL)));
        let before = channels(any(), &key);
        proxy.cut();
        eventually(LIMIT, "it is back", || channels(any(), &key)[0] != before[0]);
        assert_eq!(channels(any(), &key)[1..], before[1..]);
        guard.release().unwrap();
        line.was_served_in_order();
    }
}

/// It was passed over while it was away: it is the next when it comes back, and not the last.
#[test]
fn a_head_that_was_skipped_is_next_when_it_returns() {
    let proxy = Proxy::to(any());
    let [holder, next] = [(); 2].map(|()| Client::connect(&any().url()).unwrap());
    let head = Client::connect(&proxy.url()).unwrap();
    let key = unique_key("passed-over");
    let guard = holder.lock(&key).ttl(TTL).acquire().unwrap();
    let mut line = Line::before(holder.lock(&key));
    line.join(&head.lock(&key).ttl(TTL));
    // Behind the answer to its join, so it knows its ticket.
    head.lock(&key).inspect().unwrap();
    let ticket = any().cmd(&["ZRANGE", &queue(&key), "0", "0", "WITHSCORES"]).array()[1].clone();
    proxy.refuse();
    proxy.cut();
    guard.release().unwrap();
    // Nobody was there, so the lock was free, and is taken by one who then hands it on.
    let guard = next.lock(&key).ttl(TTL).acquire_within(LIMIT).unwrap();
    (0..3).for_each(|_| line.join(&next.lock(&key).ttl(TTL)));
    proxy.heal();
    eventually(LIMIT, "it is back", || line.waiting() == 4);
    let head = any().cmd(&["ZRANGE", &queue(&key), "0", "0", "WITHSCORES"]).array()[1].clone();
    assert_eq!(head, ticket, "the place it had");
    guard.release().unwrap();
    line.was_served_in_order();
}

/// A holder that dies hands nothing over: the queue does when its lease has ended.
#[test]
fn a_dead_holder_is_followed_by_the_queue_in_order() {
    let key = unique_key("dead-holder");
    let [holder, next] = [(); 2].map(|()| Client::connect(&any().url()).unwrap());
    let guard = holder.lock(&key).ttl(secs(2)).acquire().unwrap();
    let mut line = Line::before(next.lock(&key));
    (0..4).for_each(|_| line.join(&next.lock(&key).ttl(TTL)));
    // Nobody renews it any more.
    let began = Instant::now();
    drop(guard.detach());
    let first = line.next();
    figure("dead holder: the first, from its last renewal", first.at - began, secs(2) + ms(50));
    assert_eq!(first.who, 0);
    let others: Vec<_> = line.all().iter().map(|served| served.who).collect();
    assert_eq!(others, [1, 2, 3]);
}
