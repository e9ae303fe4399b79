//! Nothing grows: not threads, not descriptors, not keys.

use std::{
    fs,
    task::{Context, Waker},
};

use tenure_testkit::{eventually, scale, unique_key};

use super::{
    LIMIT, TTL, connect, private,
    program::{self, Program},
};

/// In a process of its own, whose threads and descriptors nobody else makes.
#[test]
fn ten_thousand_locks_and_a_hundred_clients_leave_nothing() {
    let server = private().start();
    let key = unique_key("leak");
    let rounds = scale(2_000, 10_000).to_string();
    let settings = [("SERVER", &*server.url()), ("KEY", &*key), ("ROUNDS", &*rounds)];
    let mut program = Program::start("come and go", &settings);
    assert_eq!(program.hear(), "back to base");
    program.end_well();
    let keys = server.cmd(&["KEYS", "*"]);
    let fence = format!("{{{key}}}:tenure.fence");
    let left: Vec<_> = keys.array().iter().filter_map(|key| key.text()).collect();
    assert_eq!(left, [fence.as_str()], "one number, and nothing else");
    assert!(server.cmd(&["PTTL", &fence]).int() > 0, "it ends");
    // The connection that asks.
    let clients = || server.cmd(&["CLIENT", "LIST"]).text().map_or(0, |text| text.lines().count());
    eventually(LIMIT, "all connections are closed", || clients() == 1);
}

pub(super) fn come_and_go() {
    let server = program::setting("SERVER");
    let key = program::setting("KEY");
    let rounds: usize = program::setting("ROUNDS").parse().unwrap();
    let once = |client: &tenure::blocking::Client| {
        client.lock(&key).ttl(TTL * 100).acquire().unwrap().release().unwrap();
    };
    let before = Size::now();
    let client = connect(&server);
    once(&client);
    let open = Size::now();
    for _ in 0..rounds {
        once(&client);
    }
    drop_futures(&server, &key);
    eventually(LIMIT, "only what one client needs is open", || Size::now() == open);
    client.close().unwrap();
    for round in 0..100 {
        let client = connect(&server);
        once(&client);
        if round % 2 == 0 {
            client.close().unwrap();
        }
    }
    eventually(LIMIT, "threads and descriptors are as before", || Size::now() == before);
    program::say("back to base");
}

/// Futures dropped before, while and after they are answered.
fn drop_futures(server: &str, key: &str) {
    let client = tenure::Client::connect(server).unwrap();
    for polls in (0..4).cycle().take(200) {
        let lock = client.lock(key).ttl(TTL);
        let mut acquire = Box::pin(lock.acquire());
        for _ in 0..polls {
            if acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                break;
            }
            std::thread::yield_now();
        }
    }
    tenure::blocking::Client::from(client).close().unwrap();
}

/// What a process has open.
#[derive(Debug, PartialEq)]
struct Size {
    threads: usize,
    descriptors: usize,
}

impl Size {
    fn now() -> Self {
        let count = |dir| fs::read_dir(dir).expect("a process has these").count();
        Self { threads: count("/proc/self/task"), descriptors: count("/proc/self/fd") }
    }
}
