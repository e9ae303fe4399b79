//! Tests 19 and 20: a lease outlives a busy machine, a slow network and short outages.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use tenure_testkit::{Proxy, Server, eventually, scale, unique_key};

use super::{LIMIT, connect, hold, ms, private, ttl_left, value};

/// Long enough that the outages below, six tenths of it, leave a busy machine time to renew.
const TTL: Duration = Duration::from_secs(6);

/// All processors are busy and each answer takes 100 ms: nothing is lost, and nothing is done more
/// often than a third of the TTL asks for.
#[test]
fn t19_a_lease_outlives_a_busy_machine_and_a_slow_network() {
    let server = private().start();
    let proxy = Proxy::to(&server);
    proxy.delay(ms(50));
    let key = unique_key("busy");
    let client = connect(&proxy.url());
    let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
    let over = AtomicBool::new(false);
    let spin = || {
        while !over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    let held = TTL * u32::try_from(scale(2, 30)).unwrap();
    server.cmd(&["CONFIG", "RESETSTAT"]);
    thread::scope(|scope| {
        scope.spawn(spin);
        scope.spawn(spin);
        hold(held);
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(guard.ensure_held(), Ok(()));
    let renewals = scripts_run(&server);
    // And one that was not answered in time, and was repeated.
    let most = held.as_millis() * 11 / 10 * 3 / TTL.as_millis() + 2;
    assert!(u128::from(renewals) <= most, "{renewals} renewals, and {most} would be enough");
    assert!(renewals > 0, "none was counted");
    guard.release().unwrap();
}

/// How many scripts ran since the last RESETSTAT.
fn scripts_run(server: &Server) -> u64 {
    let stats = server.cmd(&["INFO", "commandstats"]);
    let calls = |line: &str| -> Option<u64> {
        let rest = line.strip_prefix("cmdstat_eval")?;
        let (_, calls) = rest.split_once("calls=")?;
        calls.split(',').next()?.parse().ok()
    };
    stats.text().expect("statistics").lines().filter_map(calls).sum()
}

/// Three servers, so that they are waited for at the same time.
#[test]
fn t20_a_lease_outlives_a_pause_a_restart_and_the_end_of_its_connections() {
    thread::scope(|scope| {
        scope.spawn(|| outlives(private().start(), "a pause", pause));
        scope.spawn(|| outlives(private().durable().start(), "a restart", restart));
        scope.spawn(|| outlives(private().start(), "broken connections", break_connections));
    });
}

/// It takes writes no more for 0.6 TTL.
fn pause(server: &Server, _: &Proxy) {
    let pause = (TTL.as_millis() * 6 / 10).to_string();
    server.cmd(&["CLIENT", "PAUSE", &pause, "WRITE"]);
}

/// It is killed, and comes back with what was on its disk.
fn restart(server: &Server, _: &Proxy) {
    server.kill();
    hold(TTL / 3);
    server.start_again();
}

fn break_connections(server: &Server, proxy: &Proxy) {
    for _ in 0..2 {
        server.cmd(&["CLIENT", "KILL", "SKIPME", "yes"]);
        hold(TTL / 8);
        proxy.cut();
        hold(TTL / 8);
        proxy.half_open();
        hold(TTL / 8);
    }
}

/// Neither then nor after one more TTL is it lost, and the key lives.
fn outlives(server: Server, name: &str, trouble: fn(&Server, &Proxy)) {
    let proxy = Proxy::to(&server);
    let key = unique_key("blip");
    let guard = connect(&proxy.url()).lock(&key).ttl(TTL).acquire().unwrap();
    trouble(&server, &proxy);
    let until = Instant::now() + TTL;
    while Instant::now() < until {
        assert_eq!(guard.ensure_held(), Ok(()), "after {name}");
        hold(ms(20));
    }
    eventually(LIMIT, &format!("its TTL is raised again after {name}"), || {
        u128::try_from(ttl_left(&server, &key)).is_ok_and(|left| left > TTL.as_millis() / 2)
    });
    assert_eq!(value(&server, &key).as_deref(), Some(guard.token().as_bytes()), "after {name}");
    assert_eq!(guard.ensure_held(), Ok(()), "after {name}");
    guard.release().unwrap();
}
