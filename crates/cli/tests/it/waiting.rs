//! Waiting: what ends it, with a different result for each.

use std::fs;

use rustix::process::Signal;
use tenure_testkit::{Server, ServerKind, TempDir};

use crate::tool::{Tenure, is_free, key, shared};

#[test]
fn a_wait_that_timed_out_is_busy_and_the_command_never_starts() {
    let key = key();
    shared().cmd(&["SET", &key, "somebody", "PX", "60000"]);
    let run = Tenure::new().server(shared()).args(["--wait", "300ms", &key]).sh("echo ran");
    run.run().code(75).stdout("").says(&["held by", "somebody", "after a wait of 0.", "s"]);
    let acquire = Tenure::to("acquire").server(shared()).args(["--ttl", "9", "-w", "0.2", &key]);
    acquire.run().code(75).stdout("").says(&["held by", "somebody"]);
}

#[test]
fn a_cancelled_wait_exits_by_its_signal() {
    let key = key();
    shared().cmd(&["SET", &key, "somebody", "PX", "60000"]);
    let mut monitor = shared().monitor();
    let running = Tenure::to("acquire").server(shared()).args(["--ttl", "9", &key]).start();
    monitor.lines_until(|line| line.contains(&key) && line.contains("EVAL"));
    running.signal(Signal::INT);
    running.wait().code(130).stdout("").silent();
}

#[test]
fn a_server_that_dies_during_the_wait_is_unreachable_and_not_busy() {
    let server = Server::start(ServerKind::Redis70);
    let mut monitor = server.monitor();
    server.cmd(&["SET", "k", "somebody", "PX", "60000"]);
    let run = Tenure::new().server(&server).args(["--wait", "1.5", "k"]).sh("echo ran").start();
    monitor.lines_until(|line| line.contains("\"k\"") && line.contains("EVAL"));
    server.kill();
    run.wait().code(69).stdout("").says(&["could not determine whether the lock \"k\" is free"]);
}

#[test]
fn by_default_all_run_in_turn_and_without_waiting_only_one_does() {
    let key = key();
    let dir = TempDir::new();
    let go_on = dir.path().join("go_on");
    let script = format!("echo ran; while [ ! -e {} ]; do sleep 0.02; done", go_on.display());
    let start = |options: &[&str]| {
        let run = Tenure::new().server(shared()).args(options).args([&key]).sh(&script);
        run.start()
    };
    let first = start(&["-n"]).until_held(&key);
    let others: Vec<_> = (0..4).map(|_| start(&["-n"])).collect();
    for other in others {
        other.wait().code(75).stdout("");
    }
    let waiting: Vec<_> = (0..4).map(|_| start(&[])).collect();
    fs::write(&go_on, "").unwrap();
    first.wait().code(0).stdout("ran\n");
    for one in waiting {
        one.wait().code(0).stdout("ran\n").silent();
    }
}

#[test]
fn verbose_names_the_holder_while_waiting() {
    let key = key();
    shared().cmd(&["SET", &key, "somebody", "PX", "60000"]);
    let run = Tenure::new().server(shared()).args(["--verbose", &key]).sh("echo ran");
    let running = run.start();
    let said = running.first_words();
    assert!(said.contains("waiting for the lock") && said.contains("somebody"), "{said}");
    shared().cmd(&["DEL", &key]);
    let ran = running.wait().code(0).stdout("ran\n");
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{ran:?}");
    assert!(lines[1].contains("acquired the lock") && lines[1].contains(", number "), "{ran:?}");
    assert!(lines[2].contains("released the lock"), "{ran:?}");
    assert!(is_free(shared(), &key));
}
