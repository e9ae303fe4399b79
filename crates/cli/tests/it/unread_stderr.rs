//! A standard error that nobody reads.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::{TempDir, eventually};

use crate::{
    setups::{Setups, full_pipe, lose},
    tool::{PATIENCE, TENURE, Tenure, end_session, in_a_session, key},
};

/// The tool with a standard error that is full.
struct Muted {
    child: Child,
    _reader: std::io::PipeReader,
}

impl Muted {
    fn start(servers: &str, words: &[&str]) -> Self {
        let (reader, writer) = full_pipe();
        let mut command = in_a_session();
        command.arg(TENURE).args(words).env("TENURE_SERVERS", servers);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self { child: command.stderr(writer).spawn().unwrap(), _reader: reader }
    }

    fn code(&mut self) -> Option<i32> {
        let mut status = None;
        eventually(PATIENCE, "the tool ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Muted {
    fn drop(&mut self) {
        end_session(Pid::from_child(&self.child));
        // It has ended, or does so now.
        _ = self.child.wait();
    }
}

#[test]
fn an_unread_stderr_delays_neither_start_nor_end() {
    let setups = Setups::start();
    for servers in &setups.urls {
        let key = key();
        let words = ["run", "--verbose", &key, "sh", "-c", "exit 7"];
        assert_eq!(Muted::start(servers, &words).code(), Some(7), "{servers}");
        Tenure::to("status").env("TENURE_SERVERS", servers).args([&key]).run().code(1);
    }
}

#[test]
fn an_unread_stderr_suppresses_no_failure_and_no_signal() {
    let setups = Setups::start();
    for servers in &setups.urls {
        let (key, dir) = (key(), TempDir::new());
        let token = dir.path().join("token");
        let script = format!("echo $TENURE_TOKEN > {}; exec sleep 300", token.display());
        let words = ["run", "--verbose", "--ttl", "3", &key, "sh", "-c", &script];
        let mut holder = Muted::start(servers, &words);
        eventually(PATIENCE, "it is held", || token.exists());
        let mut other = Muted::start(servers, &["run", "-n", &key, "true"]);
        assert_eq!(other.code(), Some(75), "{servers}");
        let mut waiter = Muted::start(servers, &["run", "--verbose", &key, "true"]);
        // It watches for signals before it asks for the lock, and sooner or later it waits.
        eventually(PATIENCE, "it sleeps", || {
            let tool = waiter.child.id();
            let state = std::fs::read_to_string(format!("/proc/{tool}/wchan"));
            let caught = std::fs::read_to_string(format!("/proc/{tool}/status")).unwrap();
            let caught = caught.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
            let caught = u64::from_str_radix(caught.unwrap_or("0"), 16).unwrap();
            state.is_ok() && caught >> 14 & 1 == 1
        });
        kill_process(Pid::from_child(&waiter.child), Signal::TERM).unwrap();
        assert_eq!(waiter.code(), Some(143), "{servers}");
        lose(servers, &key, &token);
        assert_eq!(holder.code(), Some(70), "{servers}");
    }
}

/// As after Ctrl-S.
#[test]
fn a_stopped_terminal_delays_nothing() {
    use rustix::{
        fs::{Mode, OFlags, open},
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt}, // tidy: allow
        termios::{Action, tcflow},
    };
    let setups = Setups::start();
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap(); // tidy: allow
    let name = ptsname(&ours, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = open(name.as_c_str(), flags, Mode::empty()).unwrap();
    tcflow(&theirs, Action::OOff).unwrap();
    let mut command = in_a_session();
    command.args([TENURE, "run", "--verbose", &key(), "sh", "-c", "exit 7"]);
    let child = command.env("TENURE_SERVERS", &setups.urls[0]).stderr(theirs).spawn().unwrap();
    let mut muted = Muted { child, _reader: std::io::pipe().unwrap().0 };
    assert_eq!(muted.code(), Some(7));
}

#[test]
fn a_closed_stderr_changes_nothing() {
    let setups = Setups::start();
    let line = format!("exec 5>&1; {TENURE} run -v {} sh -c 'echo ran >&5' 2>&-; echo $?", key());
    let mut command = in_a_session();
    let output = command.args(["sh", "-c", &line]).env("TENURE_SERVERS", &setups.urls[0]).output();
    assert_eq!(String::from_utf8_lossy(&output.unwrap().stdout), "ran\n0\n");
}
