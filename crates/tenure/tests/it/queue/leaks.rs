//! What a lock that was waited for leaves behind when nobody wants it any more: its number.

use std::{fs, thread};

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, eventually, scale};

use super::line::figure;
use crate::{
    LIMIT,
    program::{self, Program},
    secs,
};

/// Subscriptions, queues and memory must not grow with the lock names that were ever waited for.
#[test]
fn lock_names_waited_for_once_leave_only_their_numbers() {
    let server = Server::start(ServerKind::Valkey81);
    let names = scale(3_000, 100_000);
    let settings = [("SERVER", &*server.url()), ("NAMES", &*names.to_string())];
    let mut program = Program::start("wait for many names", &settings);
    let began = std::time::Instant::now();
    let grown = program.hear();
    figure(&format!("{names} names waited for; KiB more: {grown}"), began.elapsed(), secs(3_600));
    assert!(channels(&server) <= 2, "a channel for each connection, at most");
    let names = i64::try_from(names).unwrap();
    assert_eq!(server.cmd(&["DBSIZE"]).int(), names, "only a number for each name");
    let keys = "local n = 0 for _, k in ipairs(redis.call('KEYS', '*:tenure.fence')) do \
                if redis.call('PTTL', k) > 0 then n = n + 1 end end return n";
    assert_eq!(server.cmd(&["EVAL", keys, "0"]).int(), names, "and each ends");
    let grown: i64 = grown.parse().unwrap();
    // An entry of a table for each name would be more, and a task or a connection much more.
    assert!(grown < 2 * 1_024, "the second half of the names took {grown} KiB");
    program.tell("end");
    program.end_well();
    eventually(LIMIT, "no channel is left", || channels(&server) == 0);
}

fn channels(server: &Server) -> usize {
    server.cmd(&["PUBSUB", "CHANNELS"]).array().len()
}

pub(super) fn wait_for_many_names() {
    let names: usize = program::setting("NAMES").parse().unwrap();
    let server = program::setting("SERVER");
    let [holder, waiter] = [(); 2].map(|()| Client::connect(&server).unwrap());
    wait_for(&holder, &waiter, 0..names / 2);
    let half = resident_kib();
    wait_for(&holder, &waiter, names / 2..names);
    program::say(&(resident_kib() - half).to_string());
    program::heed();
}

/// Several at once, each name once.
fn wait_for(holder: &Client, waiter: &Client, names: std::ops::Range<usize>) {
    let names: Vec<_> = names.collect();
    thread::scope(|scope| {
        for names in names.chunks(names.len().div_ceil(AT_ONCE)) {
            scope.spawn(move || {
                for name in names {
                    let key = format!("name-{name}");
                    let guard = holder.lock(&key).ttl(secs(600)).acquire().unwrap();
                    let (lock, look) = (waiter.lock(&key).ttl(secs(600)), holder.lock(&key));
                    let waiting = thread::spawn(move || lock.acquire().unwrap().release());
                    let waits = || look.inspect().unwrap().waiting == Some(1);
                    eventually(LIMIT, "it is in the queue", waits);
                    guard.release().unwrap();
                    waiting.join().unwrap().unwrap();
                }
            });
        }
    });
}

const AT_ONCE: usize = 8;

fn resident_kib() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}
