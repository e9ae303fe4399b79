//! Signals for the tool.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::{TempDir, Value, eventually, scale};

use crate::tool::{PATIENCE, TENURE, Tenure, is_free, is_running, key, pid_in, shared};

/// The signals that are handed on, by number and by name, with the codes of a wait they end.
const HANDED_ON: [(Signal, &str, i32); 6] = [
    (Signal::TERM, "TERM", 143),
    (Signal::INT, "INT", 130),
    (Signal::HUP, "HUP", 129),
    (Signal::QUIT, "QUIT", 131),
    (Signal::USR1, "USR1", 138),
    (Signal::USR2, "USR2", 140),
];

#[test]
fn the_command_gets_sigterm_once_and_cleans_up_under_the_lock() {
    let key = key();
    let dir = TempDir::new();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (ready, told, clean) = (file("ready"), file("told"), file("clean"));
    let script = format!(
        "exec 2>/dev/null; trap 'echo told >> {told}; sleep 0.5; : > {clean}; exit 5' TERM; \
         : > {ready}; while :; do sleep 0.02; done"
    );
    let first = Tenure::new().server(shared()).args([&key]).sh(&script).start();
    eventually(PATIENCE, "the command is ready", || fs::exists(&ready).unwrap());
    // It may start only when the first has cleaned up.
    let next = Tenure::new().server(shared()).args(["--wait", "30s", &key]);
    let next = next.sh(&format!("test -e {clean}")).start();
    first.signal(Signal::TERM);
    first.wait().code(5).stdout("").silent();
    next.wait().code(0).silent();
    assert_eq!(fs::read_to_string(&told).unwrap(), "told\n");
}

/// A command that writes down each SIGTERM, and SIGUSR1; both are handled before it looks whether
/// it may end.
fn recorder(dir: &TempDir) -> String {
    let file = |name: &str| dir.path().join(name).display().to_string();
    format!(
        "exec 2>/dev/null; trap 'echo told >> {}' TERM; trap ': > {}' USR1; echo $$ > {}; \
         while [ ! -e {} ]; do sleep 0.02; done; exit 5",
        file("told"),
        file("marked"),
        file("ready"),
        file("done")
    )
}

/// As when a supervisor signals a whole control group in which tools are nested.
#[test]
fn the_command_gets_no_second_sigterm_within_a_moment() {
    let (key, dir) = (key(), TempDir::new());
    let file = |name: &str| dir.path().join(name);
    let running = Tenure::new().server(shared()).args([&key]).sh(&recorder(&dir)).start();
    pid_in(&file("ready"));
    running.signal(Signal::TERM);
    eventually(PATIENCE, "it is told", || file("told").exists());
    running.signal(Signal::TERM);
    running.signal(Signal::USR1);
    eventually(PATIENCE, "the last signal has come", || file("marked").exists());
    fs::write(file("done"), "").unwrap();
    running.wait().code(5).silent();
    assert_eq!(fs::read_to_string(file("told")).unwrap(), "told\n");
}

/// systemd does so by default, and lets the tool know that it is a unit's main process.
#[test]
fn the_command_gets_one_signal_when_a_supervisor_signals_the_whole_unit() {
    for also_command in [true, false] {
        let (key, dir) = (key(), TempDir::new());
        let file = |name: &str| dir.path().join(name);
        fs::write(file("command"), recorder(&dir)).unwrap();
        let script = format!(
            "SYSTEMD_EXEC_PID=$$ exec {TENURE} run --server {} {key} sh {}",
            shared().url(),
            file("command").display()
        );
        let mut unit = crate::tool::in_a_session();
        let mut unit = unit.args(["sh", "-c", &script]).spawn().unwrap();
        let command = pid_in(&file("ready"));
        let tool = Pid::from_child(&unit);
        let told = || eventually(PATIENCE, "it is told", || file("told").exists());
        if also_command {
            kill_process(command, Signal::TERM).unwrap();
            told();
        }
        kill_process(tool, Signal::TERM).unwrap();
        if !also_command {
            told();
        }
        kill_process(tool, Signal::USR1).unwrap();
        eventually(PATIENCE, "the last signal has come", || file("marked").exists());
        fs::write(file("done"), "").unwrap();
        assert_eq!(unit.wait().unwrap().code(), Some(5));
        assert_eq!(fs::read_to_string(file("told")).unwrap(), "told\n", "{also_command}");
        assert!(is_free(shared(), &key));
    }
}

#[test]
fn every_signal_is_forwarded_and_the_lock_released_after_the_command() {
    for (signal, name, _) in HANDED_ON {
        let key = key();
        let dir = TempDir::new();
        let ready = dir.path().join("ready");
        let socket = shared().socket().unwrap().display().to_string();
        // It looks for the key at SIGTERM: the lock is held to the last.
        let script = format!(
            "exec 2>/dev/null; trap 'redis-cli -s {socket} EXISTS {key}; exit 5' {name}; : > {}; \
             while :; do sleep 0.02; done",
            ready.display()
        );
        let running = Tenure::new().server(shared()).args([&key]).sh(&script).start();
        eventually(PATIENCE, "the command is ready", || ready.exists());
        running.signal(signal);
        running.wait().code(5).stdout("1\n").silent();
        assert!(is_free(shared(), &key), "after {name}");
    }
}

#[test]
fn a_signal_that_the_command_handles_ends_nothing() {
    let key = key();
    let dir = TempDir::new();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (ready, first, second) = (file("ready"), file("first"), file("second"));
    let script = format!(
        "exec 2>/dev/null; trap ': > {first}' USR1; trap ': > {second}; exit 0' USR2; : > {ready}; \
         while :; do sleep 0.02; done"
    );
    let running = Tenure::new().server(shared()).args([&key]).sh(&script).start();
    eventually(PATIENCE, "the command is ready", || fs::exists(&ready).unwrap());
    running.signal(Signal::USR1);
    eventually(PATIENCE, "the first has come", || fs::exists(&first).unwrap());
    assert!(!is_free(shared(), &key));
    running.signal(Signal::USR2);
    running.wait().code(0).silent();
    assert!(fs::exists(&second).unwrap());
}

#[test]
fn a_forwarded_signal_reaches_the_children_of_the_command() {
    for round in 0..scale(20, 100) {
        let (signal, name) =
            if round % 2 == 0 { (Signal::TERM, "TERM") } else { (Signal::HUP, "HUP") };
        let key = key();
        let dir = TempDir::new();
        let pid = dir.path().join("pid");
        let grandchild = format!("echo $$ > {}; exec sleep 300", pid.display());
        // The shell outlives its child only to say that it got the signal, too.
        let script = format!("trap 'exit 7' {name}; sh -c '{grandchild}' & while :; do wait; done");
        let running = Tenure::new().server(shared()).args([&key]).sh(&script).start();
        let grandchild = pid_in(&pid);
        running.signal(signal);
        running.wait().code(7).silent();
        eventually(PATIENCE, "the grandchild has ended", || !is_running(grandchild));
        assert!(is_free(shared(), &key), "after {name}");
    }
}

#[test]
fn killing_the_tool_kills_the_command() {
    for _ in 0..scale(20, 100) {
        let key = key();
        let dir = TempDir::new();
        let ready = dir.path().join("ready");
        let script = format!("trap '' TERM HUP INT; echo $$ > {}; exec sleep 300", ready.display());
        let running = Tenure::new().server(shared()).args(["--ttl", "2", &key]).sh(&script).start();
        let child = pid_in(&ready);
        running.signal(Signal::KILL);
        assert!(running.wait().code.is_none());
        eventually(PATIENCE, "the command has died with the tool", || !is_running(child));
    }
}

#[test]
fn a_signal_ends_the_wait_and_leaves_no_key() {
    for (signal, name, code) in HANDED_ON {
        let key = key();
        shared().cmd(&["SET", &key, "somebody", "PX", "60000"]);
        let mut monitor = shared().monitor();
        let running = Tenure::new().server(shared()).args([&key]).sh("echo ran").start();
        // It has asked for the lock, so it watches for signals.
        monitor.lines_until(|line| line.contains(&key) && line.contains("EVAL"));
        running.signal(signal);
        running.wait().code(code).stdout("").silent();
        assert_eq!(shared().cmd(&["GET", &key]), Value::Bulk(b"somebody".to_vec()), "{name}");
        shared().cmd(&["DEL", &key]);
        let left = shared().cmd(&["KEYS", &format!("*{key}*")]);
        assert_eq!(left, Value::Array(Vec::new()), "{name}");
    }
}

#[test]
fn ignored_signals_stay_ignored_for_tool_and_command() {
    let key = key();
    let dir = TempDir::new();
    let (ready, go_on) = (dir.path().join("ready"), dir.path().join("go_on"));
    let url = shared().url();
    let inner = format!(
        ": > {}; while [ ! -e {} ]; do sleep 0.02; done; echo whole",
        ready.display(),
        go_on.display()
    );
    let script = format!("trap '' HUP INT; exec {TENURE} run --server {url} {key} sh -c '{inner}'");
    let mut outer = std::process::Command::new("sh");
    let outer = outer.args(["-c", &script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    eventually(PATIENCE, "the command is ready", || ready.exists());
    let pid = Pid::from_child(&outer);
    for signal in [Signal::HUP, Signal::INT] {
        kill_process(pid, signal).unwrap();
    }
    fs::write(&go_on, "").unwrap();
    let ended = outer.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &ended.stdout[..]), (Some(0), &b"whole\n"[..]));
}
