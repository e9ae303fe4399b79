//! `--report`: what became of it, for programs.

use std::{
    fs,
    process::{Command, Stdio},
};

use tenure_testkit::{Server, ServerKind, TempDir};

use crate::tool::{TENURE, Tenure, key, shared};

/// The report of a run with these options, and its exit code.
fn report(url: &str, options: &[&str], key: &str, script: &str) -> (String, Option<i32>) {
    let dir = TempDir::new();
    let file = dir.path().join("report.json");
    let run = Tenure::new().url(url).args(["--report", file.to_str().unwrap()]).args(options);
    let ran = run.args([key]).sh(script).run();
    (fs::read_to_string(&file).unwrap(), ran.code)
}

#[track_caller]
fn has(report: &str, members: &[&str]) {
    assert!(report.starts_with('{') && report.ends_with("}\n"), "{report}");
    for member in members {
        assert!(report.contains(member), "no {member} in {report}");
    }
}

#[test]
fn each_outcome_has_a_word() {
    let url = shared().url();
    let key = key();
    let (text, code) = report(&url, &[], &key, "exit 7");
    assert_eq!(code, Some(7));
    let whole = [&format!("\"key\":\"{key}\"")[..], "\"outcome\":\"ended\"", "\"exit_code\":7"];
    has(&text, &whole);
    has(&text, &["\"child_status\":7", "\"child_signal\":null", "\"lost\":null", "\"held_ms\":"]);
    assert!(!text.contains("\"fence\":null") && !text.contains("\"held_ms\":null"), "{text}");

    let (text, _) = report(&url, &[], &key, "kill -9 $$");
    has(&text, &["\"ended\"", "\"exit_code\":137", "\"child_status\":null", "\"child_signal\":9"]);

    let (text, _) = report(&url, &["--max-hold", "100ms"], &key, "exec sleep 300");
    has(&text, &["\"outcome\":\"lost\"", "\"exit_code\":70", "\"lost\":\"max_hold\""]);

    shared().cmd(&["SET", &key, "somebody", "PX", "60000"]);
    let (text, _) = report(&url, &["-n", "-E", "69"], &key, "exit 7");
    has(&text, &["\"outcome\":\"busy\"", "\"exit_code\":69", "\"fence\":null"]);
    has(&text, &["\"held_ms\":null", "\"child_status\":null", "\"waited_ms\":"]);

    let gone = Server::start(ServerKind::Redis70);
    gone.kill();
    let (text, _) = report(&gone.url(), &[], &key, "exit 7");
    has(&text, &["\"outcome\":\"unreachable\"", "\"exit_code\":69"]);

    let (text, _) = report(&url, &[], "k:tenure:fence", "exit 7");
    has(&text, &["\"outcome\":\"usage\"", "\"exit_code\":64"]);
}

#[test]
fn a_loss_names_the_current_holder() {
    let socket = shared().socket().unwrap().display().to_string();
    let key = key();
    let script = format!("redis-cli -s {socket} SET {key} another PX 60000");
    let (text, code) = report(&shared().url(), &[], &key, &script);
    assert_eq!(code, Some(70));
    has(&text, &["\"lost\":\"taken\"", "another", "\"child_status\":0", "\"outcome\":\"lost\""]);
}

#[test]
fn a_report_may_go_to_a_descriptor_that_the_command_does_not_inherit() {
    let key = key();
    let url = shared().url();
    // The command leaves a child behind; a descriptor that this had would hold up the reader.
    let script = format!(
        "{{ {TENURE} run --server {url} --report 3 {key} sh -c 'sleep 300 >&- 2>&- &' >&2; }} 3>&1 \
         | cat"
    );
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &script]).stderr(Stdio::null()).output().unwrap();
    has(&String::from_utf8_lossy(&output.stdout), &["\"outcome\":\"ended\"", "\"exit_code\":0"]);
}

#[test]
fn a_report_that_cannot_be_opened_exits_64_before_anything_is_sent() {
    let mut monitor = shared().monitor();
    let key = key();
    let dir = TempDir::new();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    // The tool's standard input can be read, and not written.
    for report in ["/nonexistent/report.json", "9", "-1", "", "0", "/", pipe] {
        let option = format!("--report={report}");
        let ran = Tenure::new().server(shared()).args([&option, &key]).sh("echo ran").run();
        ran.code(64).stdout("").says(&["cannot write a report to", report]);
    }
    let seen = monitor.so_far();
    assert!(!seen.iter().any(|line| line.contains(&key)), "{seen:?}");
}

#[test]
fn a_report_names_the_holder_and_why_the_lock_was_not_acquired() {
    let (url, key) = (shared().url(), key());
    let holder = Tenure::to("acquire").server(shared()).args(["--ttl", "60", "--label", "night"]);
    holder.args([&key]).run().code(0);
    let (text, _) = report(&url, &["-n"], &key, "exit 7");
    has(&text, &["\"outcome\":\"busy\"", "\"holder\":\"night\"", "\"taken_by\":null"]);
    has(&text, &["\"reason\":\"the lock ", "is held by night for "]);

    let (text, _) = report("redis://127.0.0.1:1", &[], &key, "exit 7");
    has(&text, &["\"outcome\":\"unreachable\"", "Connection refused", "\"holder\":null"]);

    let (text, _) = report(&url, &[], "k:tenure:fence", "exit 7");
    has(&text, &["\"outcome\":\"usage\"", "tenure keeps for itself"]);

    let key = crate::tool::key();
    let (text, _) = report(&url, &["--max-hold", "100ms"], &key, "exec sleep 300");
    has(&text, &["\"outcome\":\"lost\"", "\"reason\":\"lost the lock"]);
    let (text, _) = report(&url, &[], &key, "exit 7");
    has(&text, &["\"outcome\":\"ended\"", "\"reason\":null", "\"holder\":null"]);
}

#[test]
fn the_report_file_keeps_its_content_until_there_is_a_report() {
    let dir = TempDir::new();
    let file = dir.path().join("report.json");
    let before = "the report of yesterday, which is longer than the one of today;".repeat(20);
    fs::write(&file, &before).unwrap();
    let (url, key) = (shared().url(), key());
    let script = format!("test \"$(cat {})\" = \"{}\" && exit 7", file.display(), before);
    let run = Tenure::new().url(&url).args(["--report", file.to_str().unwrap(), &key]);
    run.sh(&script).run().code(7);
    let report = fs::read_to_string(&file).unwrap();
    has(&report, &["\"exit_code\":7"]);
    assert!(!report.contains("yesterday"), "{report}");
}
