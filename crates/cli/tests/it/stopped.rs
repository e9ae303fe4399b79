//! Tools and commands that are stopped, and go on too late.

use std::thread;

use rustix::process::{Signal, kill_process_group};
use tenure_testkit::{TempDir, eventually, scale};

use crate::tool::{PATIENCE, Tenure, is_free, is_running, key, pid_in, shared, until_told, value};

#[test]
fn a_group_stopped_past_its_lease_ends_and_disturbs_nobody() {
    // Each takes longer than its TTL, so several go on at the same time.
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| (0..scale(5, 25)).for_each(|_| stopped_past_its_lease()));
        }
    });
}

fn stopped_past_its_lease() {
    let key = key();
    let dir = TempDir::new();
    let ready = dir.path().join("ready");
    // It ignores TERM: what ends it is the kill that a lease which is over calls for at once.
    let script =
        format!("trap '' TERM; echo $$ > {}; while :; do sleep 0.02; done", ready.display());
    let first = Tenure::new().server(shared()).args(["--ttl", "1", &key]).sh(&script).start();
    let child = pid_in(&ready);
    first.signal(Signal::STOP);
    kill_process_group(child, Signal::STOP).unwrap();
    let done = dir.path().join("done");
    let wait_for = format!("while [ ! -e {} ]; do sleep 0.02; done", done.display());
    let next = Tenure::new().server(shared()).args(["--label", "next", &key]).sh(&wait_for).start();
    eventually(PATIENCE, "the next one has the lock", || {
        value(shared(), &key).bytes().is_some_and(|token| token.ends_with(b"@next"))
    });
    let token = value(shared(), &key);
    kill_process_group(child, Signal::CONT).unwrap();
    first.signal(Signal::CONT);
    first.wait().code(70).says(&["lost the lock", &key]);
    assert!(!is_running(child));
    assert_eq!(value(shared(), &key), token, "the next one is left alone");
    std::fs::write(done, "").unwrap();
    next.wait().code(0).silent();
}

#[test]
fn a_tool_that_resumes_after_its_lease_ends_the_command() {
    let key = key();
    let dir = TempDir::new();
    let ready = dir.path().join("ready");
    let script = format!("trap '' TERM; echo $$ > {}; exec sleep 300", ready.display());
    let running = Tenure::new().server(shared()).args(["--ttl", "1", &key]).sh(&script).start();
    let child = pid_in(&ready);
    running.signal(Signal::STOP);
    eventually(PATIENCE, "the key has ended", || is_free(shared(), &key));
    running.signal(Signal::CONT);
    // Not an outage: no server did anything wrong.
    let words = ["lost the lock", &key, "stopped or suspended", "longer pauses"];
    running.wait().code(70).says(&words);
    assert!(!is_running(child));
}

#[test]
fn without_a_terminal_a_stopped_command_keeps_its_lock() {
    let key = key();
    let dir = TempDir::new();
    let (ready, done, script) = until_told(&dir);
    let run = Tenure::new().server(shared()).args(["--ttl", "1", &key]).sh(&script);
    let running = run.start();
    let child = pid_in(&ready);
    let token = value(shared(), &key);
    kill_process_group(child, Signal::STOP).unwrap();
    let stopped = std::time::Instant::now();
    eventually(PATIENCE, "three TTLs have gone by", || stopped.elapsed().as_millis() > 3_000);
    assert_eq!(value(shared(), &key), token, "it was renewed all the time");
    std::fs::write(done, "").unwrap();
    // The tool forwards this: a caller that knows only the tool can resume the command.
    running.signal(Signal::CONT);
    running.wait().code(0).silent();
}
