//! A lease outlives a busy machine, a slow network and short outages.

use std::{
    convert::identity,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use tenure_testkit::{Builder, Proxy, Server, eventually, raised_at_the_end, scale, unique_key};

use super::{LIMIT, connect, hold, ms, private, ttl_left, value};
use crate::servers;

/// Long enough that the outages below, six tenths of it, leave a busy machine time to renew.
const TTL: Duration = Duration::from_secs(6);

/// All processors are busy and each answer takes 100 ms: nothing is lost, and nothing is done more
/// often than a third of the TTL asks for.
#[test]
fn a_lease_outlives_a_busy_machine_and_a_slow_network() {
    outlives_a_busy_machine(&[private().start()], scale(2, 30));
}

/// One lease on all of these, held for so many TTLs.
pub(crate) fn outlives_a_busy_machine(nodes: &[Server], ttls: usize) {
    let proxies: Vec<_> = nodes.iter().map(Proxy::to).collect();
    proxies.iter().for_each(|proxy| proxy.delay(ms(50)));
    let key = unique_key("busy");
    let lock = connect(&servers::behind(&proxies)).lock(&key).ttl(TTL);
    let guard = lock.acquire_within(LIMIT).unwrap();
    let over = AtomicBool::new(false);
    let spin = || {
        while !over.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    };
    let held = TTL * u32::try_from(ttls).unwrap();
    for node in nodes {
        node.cmd(&["CONFIG", "RESETSTAT"]);
    }
    thread::scope(|scope| {
        scope.spawn(spin);
        scope.spawn(spin);
        let _over = raised_at_the_end(&over);
        hold(held);
    });
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    // And one that was not answered in time, and was repeated. Several servers are asked for their
    // clocks along with each.
    let scripts = if nodes.len() > 1 { 2 } else { 1 };
    let most = scripts * (held.as_millis() * 11 / 10 * 3 / TTL.as_millis() + 2);
    for node in nodes {
        let ran = servers::scripts(node);
        assert!(u128::try_from(ran).unwrap() <= most, "{ran} scripts, and {most} would be enough");
        assert!(ran > 0, "none was counted");
    }
    guard.release().unwrap();
}

#[test]
fn a_lease_outlives_a_pause_a_restart_and_lost_connections() {
    outlives_short_outages(|with| vec![with(private()).start()]);
}

/// Each with servers of its own, so that they are waited for at the same time.
pub(crate) fn outlives_short_outages(start: impl Fn(fn(Builder) -> Builder) -> Vec<Server> + Sync) {
    thread::scope(|scope| {
        let start = &start;
        scope.spawn(|| outlives(&start(identity), "a pause", pause));
        scope.spawn(|| outlives(&start(Builder::durable), "a restart", restart));
        scope.spawn(|| outlives(&start(identity), "broken connections", break_connections));
    });
}

/// They take no writes for 0.6 TTL.
fn pause(nodes: &[Server], _: &[Proxy]) {
    let pause = (TTL.as_millis() * 6 / 10).to_string();
    for node in nodes {
        node.cmd(&["CLIENT", "PAUSE", &pause, "WRITE"]);
    }
}

/// They are killed, and come back with what was on their disk.
fn restart(nodes: &[Server], _: &[Proxy]) {
    nodes.iter().for_each(Server::kill);
    hold(TTL / 3);
    thread::scope(|scope| {
        for node in nodes {
            scope.spawn(|| node.start_again());
        }
    });
}

fn break_connections(nodes: &[Server], proxies: &[Proxy]) {
    for _ in 0..2 {
        for node in nodes {
            node.cmd(&["CLIENT", "KILL", "SKIPME", "yes"]);
        }
        hold(TTL / 8);
        proxies.iter().for_each(Proxy::cut);
        hold(TTL / 8);
        proxies.iter().for_each(Proxy::half_open);
        hold(TTL / 8);
    }
}

/// Neither then nor after one more TTL is it lost, and the key lives.
fn outlives(nodes: &[Server], name: &str, trouble: fn(&[Server], &[Proxy])) {
    let proxies: Vec<_> = nodes.iter().map(Proxy::to).collect();
    let key = unique_key("blip");
    let lock = connect(&servers::behind(&proxies)).lock(&key).ttl(TTL);
    let guard = lock.acquire_within(LIMIT).unwrap();
    trouble(nodes, &proxies);
    let until = Instant::now() + TTL;
    while Instant::now() < until {
        assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()), "after {name}");
        hold(ms(20));
    }
    for node in nodes {
        eventually(LIMIT, &format!("its TTL is raised again after {name}"), || {
            u128::try_from(ttl_left(node, &key)).is_ok_and(|left| left > TTL.as_millis() / 2)
        });
        assert_eq!(value(node, &key).as_deref(), Some(guard.token().as_bytes()), "after {name}");
    }
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()), "after {name}");
    guard.release().unwrap();
}
