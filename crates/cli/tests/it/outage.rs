//! A server that cannot be reached for longer than a lease.

use std::{fs, thread};

use tenure_testkit::{Proxy, Server, ServerKind, TempDir, Value, eventually, scale};

use crate::tool::{PATIENCE, Tenure, is_running, key, pid_in};

#[test]
fn the_whole_group_has_ended_before_the_key_expires() {
    let server = Server::builder(ServerKind::Redis70).tcp().start();
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| (0..scale(5, 25)).for_each(|round| cut_off(&server, WAYS[round % 2])));
        }
    });
}

/// How the child is started: in the command's group, and in a session of its own.
const WAYS: [&str; 2] = ["sh -c", "setsid sh -c"];

/// A command and its child, both deaf to TERM, write down when they are alive; the server says
/// when the key ends.
fn cut_off(server: &Server, way: &str) {
    let proxy = Proxy::to(server);
    let key = key();
    let dir = TempDir::new();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (alive, told) = (file("alive"), file("told"));
    // Often enough to show the end, and rarely enough not to starve the shells.
    let write = format!("while :; do date +%s%3N >> {alive}; sleep 0.02; done");
    // The child's own shell shows the signal, by a file that it creates without a process of its
    // own; its child and itself go on.
    let script = format!(
        "exec 2>/dev/null; trap ': > {told}' TERM; \
         {way} \"trap '' TERM; echo \\$\\$ > {}; {write}\" & {write}",
        file("pid")
    );
    // Time enough for a shell on a busy host to run its trap.
    let options = ["--ttl", "3", "--kill-after", "1300ms", &key];
    let running = Tenure::new().url(&proxy.url()).args(options).sh(&script).start();
    let child = pid_in(dir.path().join("pid").as_path());
    eventually(PATIENCE, "the command writes", || fs::exists(&alive).unwrap_or(false));
    proxy.black_hole();
    // Nothing reaches the server any more, so this stands.
    let Value::Int(ends) = server.cmd(&["PEXPIRETIME", &key]) else { panic!("no number") };
    running.wait().code(70).says(&["lost the lock", &key, "ran out"]);
    assert!(!is_running(child));
    // The last line may have been cut short by the kill.
    let text = fs::read_to_string(&alive).unwrap();
    let last = text.lines().rfind(|line| line.len() == 13).unwrap().parse::<i64>().unwrap();
    assert!(ends > 0, "the lock was held when the network went");
    assert!(last < ends, "alive {} ms after the end", last - ends);
    assert!(fs::exists(&told).unwrap(), "killed without SIGTERM before");
}
