//! Standard output and reports that are closed, full, or never read.

use std::{io::Read as _, process::Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tenure_testkit::eventually;

use crate::{
    setups::{Setups, full_pipe},
    tool::{PATIENCE, TENURE, Tenure, in_a_session, is_free, key, shared},
};

/// What a shell prints that runs this line, in which `$T` is the tool and `$S` names the servers.
fn shell(line: &str, servers: &str) -> (String, String) {
    let mut command = in_a_session();
    command.args(["sh", "-c", line]).env("T", TENURE).env("TENURE_SERVERS", servers);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_token_that_cannot_be_printed_leaves_no_lock() {
    let setups = Setups::start();
    for servers in &setups.urls {
        for redirection in [">&-", ">/dev/full", ">large"] {
            let key = key();
            // A file that may not grow: SIGXFSZ, which ends a program that does not expect it.
            let line = match redirection {
                ">large" => format!(
                    "cd $(mktemp -d); head -c 524288 /dev/zero >large; (ulimit -f 1024; \
                     $T acquire --ttl 60 {key} >>large); echo $?; $T status {key}; rm large"
                ),
                _ => format!("$T acquire --ttl 60 {key} {redirection}; echo $?; $T status {key}"),
            };
            let (printed, said) = shell(&line, servers);
            let case = format!("{servers} {redirection}: {printed:?} {said:?}");
            assert!(printed.starts_with("74\nfree\n"), "{case}");
            assert!(said.contains("cannot print the token of the lock"), "{case}");
            assert!(said.contains("the lock is released again"), "{case}");
        }
    }
}

/// The tool's exit code when the reader of its output has gone.
fn without_a_reader(words: &[&str]) -> Option<i32> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = in_a_session();
    command.arg(TENURE).args(words).env("TENURE_SERVERS", shared().url()).stdout(writer);
    command.stderr(Stdio::null()).status().unwrap().code()
}

#[test]
fn a_token_whose_reader_has_gone_leaves_no_lock() {
    let key = key();
    assert_eq!(without_a_reader(&["acquire", "--ttl", "60", &key]), Some(74));
    assert!(is_free(shared(), &key));
}

#[test]
fn an_unread_token_is_abandoned_at_a_signal_and_when_the_lease_ends() {
    for (ttl, signal, code) in [("60", Some(Signal::TERM), 143), ("500ms", None, 74)] {
        let key = key();
        let (_reader, writer) = full_pipe();
        let mut command = in_a_session();
        command.args([TENURE, "acquire", "--server", &shared().url(), "--ttl", ttl, &key]);
        let mut child = command.stdout(writer).stderr(Stdio::null()).spawn().unwrap();
        if let Some(signal) = signal {
            eventually(PATIENCE, "it is held", || !is_free(shared(), &key));
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
        assert_eq!(child.wait().unwrap().code(), Some(code), "{ttl}");
        assert!(is_free(shared(), &key), "{ttl}");
    }
}

#[test]
fn a_status_or_help_that_cannot_be_printed_is_a_failure() {
    let key = key();
    Tenure::to("acquire").server(shared()).args(["--ttl", "60", &key]).run().code(0);
    for redirection in [">/dev/full", ">&-"] {
        for words in [&format!("status {key}")[..], &format!("status --json {key}"), "--help"] {
            let (printed, said) =
                shell(&format!("$T {words} {redirection}; echo $?"), &shared().url());
            assert_eq!(printed, "74\n", "{words} {redirection}: {said}");
            assert!(said.contains("cannot write to standard output"), "{said}");
        }
    }
    // A reader that has seen enough is no trouble.
    assert_eq!(without_a_reader(&["status", &key]), Some(0));
}

#[test]
fn a_report_that_cannot_be_written_is_a_failure_and_hides_no_other() {
    for (script, code) in [("exit 0", 74), ("exit 7", 7)] {
        let key = key();
        let ran = Tenure::new().server(shared()).args(["--report", "/dev/full", &key]).sh(script);
        ran.run().code(code).says(&["cannot write the report", "No space left"]);
        assert!(is_free(shared(), &key));
    }
    let line = format!("$T run --report 1 {} true >&-; echo $?", key());
    assert_eq!(shell(&line, &shared().url()).0, "64\n");
}

#[test]
fn an_unread_report_delays_neither_the_release_nor_the_exit() {
    let key = key();
    let (_reader, writer) = full_pipe();
    let mut command = in_a_session();
    command.args([TENURE, "run", "--server", &shared().url(), "--report", "0", &key, "true"]);
    let mut child = command.stdin(writer).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(74));
    assert!(is_free(shared(), &key));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("cannot write the report"), "{said}");
}
