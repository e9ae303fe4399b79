//! MONITOR: which commands a lock costs, and in which step the TTL is set.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, raised_at_the_end, unique_key};

use crate::{ms, secs};

/// A line of MONITOR: `TIME [DB WHO] "NAME" "ARGUMENT" …`, where WHO is `lua` within a script.
fn is_in_script(line: &str) -> bool {
    line.contains(" lua] ")
}

/// The words of a command, unquoted.
fn words(line: &str) -> Vec<&str> {
    let (_, command) = line.split_once("] ").unwrap();
    command.trim_matches('"').split("\" \"").collect()
}

#[test]
fn value_and_ttl_are_set_in_one_command_of_one_script() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let key = unique_key("one-step");
        let mut monitor = server.monitor();
        let client = Client::connect(&server.url()).unwrap();
        let guard = client.lock(&key).ttl(secs(7)).acquire().unwrap();
        let lines = monitor.so_far();
        let in_script: Vec<_> = lines.iter().filter(|line| is_in_script(line)).collect();
        let writes: Vec<_> = in_script
            .iter()
            .map(|line| words(line))
            .filter(|words| words[0].eq_ignore_ascii_case("SET") && words[1] == key)
            .collect();
        let token = guard.token().as_str();
        assert_eq!(writes, [["SET", &key, token, "PX", "7000"]], "{kind}: {lines:?}");
        // Nothing else gives the key a life of its own, or a second one later.
        for line in &lines {
            let name = words(line)[0].to_ascii_uppercase();
            assert!(!name.contains("EXPIRE") && name != "SETNX" && name != "PERSIST", "{line}");
            assert!(is_in_script(line) || name != "SET", "a SET outside a script: {line}");
        }
        guard.release().unwrap();
    }
}

#[test]
fn an_uncontended_cycle_is_two_commands_of_ours() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let client = Client::connect(&server.url()).unwrap();
        let lock = client.lock(unique_key("cycle"));
        // The first cycle brings the connection up, and the scripts to the server.
        lock.acquire().unwrap().release().unwrap();
        let mut monitor = server.monitor();
        for _ in 0..3 {
            lock.acquire().unwrap().release().unwrap();
        }
        let lines = monitor.so_far();
        let ours: Vec<_> = lines.iter().filter(|line| !is_in_script(line)).collect();
        assert_eq!(ours.len(), 6, "{kind}: {ours:?}");
        assert!(ours.iter().all(|line| words(line)[0] == "EVALSHA"), "{kind}: {ours:?}");
    }
}

#[test]
fn a_released_lock_leaves_only_its_fence_key_and_that_ends() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let client = Client::connect(&server.url()).unwrap();
        let guard = client.lock("k").acquire().unwrap();
        guard.extend(secs(20)).unwrap();
        guard.release().unwrap();
        client.lock("{tag}k").acquire().unwrap().release().unwrap();
        let mut keys: Vec<_> = server
            .cmd(&["KEYS", "*"])
            .array()
            .iter()
            .map(|key| key.text().unwrap().to_owned())
            .collect();
        keys.sort();
        assert_eq!(keys, ["{k}:tenure.fence", "{tag}k:tenure:fence"], "{kind}");
        let a_day = 24 * 60 * 60 * 1_000;
        for key in keys {
            let left = server.cmd(&["PTTL", &key]).int();
            assert!(left > a_day - 60_000 && left <= a_day + 20_000, "{kind} {key}: {left}");
        }
    }
}

/// A watcher looks at every key there is, again and again, while locks of all fates come and go.
#[test]
fn no_key_is_ever_without_a_ttl() {
    let server = Server::start(ServerKind::Redis70);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut raw = server.raw();
            let mut looks = 0;
            while !done.load(Ordering::SeqCst) {
                for key in raw.cmd(&["KEYS", "*"]).array() {
                    let key = key.bytes().unwrap();
                    let left = raw.cmd(&[b"PTTL", key]).int();
                    // -2: it has ended since.
                    assert_ne!(left, -1, "{} has no TTL", key.escape_ascii());
                    looks += 1;
                }
            }
            looks
        });
        let at_the_end = raised_at_the_end(&done);
        let client = Client::connect(&server.url()).unwrap();
        for round in 0..60 {
            let lock = client.lock(format!("k{}", round % 3)).ttl(secs(4));
            let guard = lock.acquire().unwrap();
            guard.extend(secs(5)).unwrap();
            match round % 5 {
                0 => guard.release().unwrap(),
                1 => drop(guard),
                2 => drop(lock.steal().unwrap()),
                3 => drop(lock.force_release().unwrap()),
                _ => drop(lock.resume(guard.detach()).unwrap()),
            }
        }
        drop(at_the_end);
        assert!(watcher.join().unwrap() > 0, "the watcher saw no key");
    });
}

#[test]
fn bad_settings_open_no_connection() {
    let server = Server::start(ServerKind::Redis70);
    let proxy = tenure_testkit::Proxy::to(&server);
    let client = Client::connect(&proxy.url()).unwrap();
    let lock = client.lock("k");
    assert!(lock.clone().ttl(ms(0)).acquire().is_err());
    assert!(lock.clone().label("x".repeat(65)).try_acquire().is_err());
    assert!(lock.clone().max_hold(ms(0)).steal().is_err());
    assert!(lock.clone().min_validity(secs(60)).acquire_within(secs(5)).is_err());
    assert!(client.lock("").inspect().is_err());
    assert!(client.lock("k:tenure.fence").force_release().is_err());
    assert_eq!(proxy.accepted(), 0);
    lock.acquire().unwrap().release().unwrap();
    assert_eq!(proxy.accepted(), 1);
}
