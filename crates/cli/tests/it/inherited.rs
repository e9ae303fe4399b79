//! Signals and descriptors, which the command finds as the tool's starter has set them up.

use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::{TempDir, eventually};

use crate::tool::{PATIENCE, TENURE, end_session, is_free, key, pid_in, shared};

/// What is ignored and blocked in a program that `env` starts with these options.
fn signals(options: &[&str], tool: bool) -> String {
    let key = key();
    let mut command = Command::new("env");
    command.arg("--default-signal").args(options);
    if tool {
        command.args([TENURE, "run", "--server", &shared().url(), &key]);
    }
    // No shell, which would change some.
    command.args(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{options:?} {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command_inherits_ignored_and_blocked_signals() {
    for options in [
        &[][..],
        &["--ignore-signal=PIPE"],
        &["--ignore-signal=CHLD"],
        &["--ignore-signal=XFSZ"],
        &["--ignore-signal=INT,QUIT,HUP"],
        &["--ignore-signal"],
        &["--block-signal=CHLD"],
        &["--block-signal=TERM,USR1,TTOU"],
        &["--block-signal"],
        &["--ignore-signal", "--block-signal"],
    ] {
        assert_eq!(signals(options, true), signals(options, false), "{options:?}");
    }
}

/// The tool would notice neither a signal to end nor the end of the command.
#[test]
fn blocked_signals_still_reach_the_tool() {
    let key = key();
    let start = |words: &[&str]| {
        let mut command = Command::new("setsid");
        command.args(["env", "--default-signal", "--block-signal", TENURE, "run"]);
        let command = command.args(["--server", &shared().url(), &key]).args(words);
        command.spawn().unwrap()
    };
    let ended = |tool: &mut Child| {
        let mut status = None;
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(PATIENCE, "it ends", || {
                status = tool.try_wait().unwrap();
                status.is_some()
            });
        }));
        end_session(Pid::from_child(tool));
        ended.unwrap();
        status.and_then(|status| status.code())
    };
    assert_eq!(ended(&mut start(&["sh", "-c", "exit 7"])), Some(7));
    shared().cmd(&["SET", &key, "somebody", "PX", "60000"]);
    let mut monitor = shared().monitor();
    let mut waiting = start(&["true"]);
    // It has asked for the lock, so it watches for signals.
    monitor.lines_until(|line| line.contains(&key) && line.contains("EVAL"));
    kill_process(Pid::from_child(&waiting), Signal::TERM).unwrap();
    assert_eq!(ended(&mut waiting), Some(143));
}

#[test]
fn the_command_inherits_closed_descriptors() {
    for (redirection, number) in [("<&-", 0), (">&-", 1)] {
        let line = format!(
            "exec 5>&1; $T run --server {} {} sh -c 'test -e /proc/$$/fd/{number}; echo $? >&5' \
             {redirection}",
            shared().url(),
            key()
        );
        let output = Command::new("sh").args(["-c", &line]).env("T", TENURE).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{redirection} {output:?}");
    }
}

/// As `nohup` and `&` leave them.
#[test]
fn with_ignored_signals_the_tool_works_and_forwards_the_others() {
    let (key, dir) = (key(), TempDir::new());
    let ready = dir.path().join("ready");
    let mut command = Command::new("setsid");
    command.args(["env", "--default-signal", "--ignore-signal=INT,QUIT,HUP", TENURE, "run"]);
    let script =
        format!("trap 'exit 5' TERM; echo $$ > {}; while :; do sleep 0.02; done", ready.display());
    command.args(["--server", &shared().url(), &key, "sh", "-c", &script]);
    let mut running = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    pid_in(&ready);
    let tool = Pid::from_child(&running);
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
        kill_process(tool, signal).unwrap();
    }
    assert_eq!(running.wait().unwrap().code(), Some(5));
    assert!(is_free(shared(), &key));
}
