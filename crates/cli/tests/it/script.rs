//! `acquire`, `extend`, `release` and `status`: locks for shell scripts.

use std::{path::Path, process::Command};

use tenure_testkit::{Server, ServerKind, TempDir, Value, eventually};

use crate::tool::{PATIENCE, TENURE, Tenure, is_free, key, shared, value};

fn to(command: &str) -> Tenure {
    Tenure::to(command).server(shared())
}

fn acquired(key: &str, ttl: &str) -> String {
    let ran = to("acquire").args(["--ttl", ttl, key]).run().code(0).silent();
    let (token, rest) = ran.stdout.split_once('\n').unwrap();
    assert_eq!(rest, "", "the token is all that is printed");
    token.to_owned()
}

#[test]
fn a_printed_token_extends_and_releases() {
    let key = key();
    let token = acquired(&key, "60");
    assert_eq!(value(shared(), &key), Value::Bulk(token.clone().into_bytes()));
    to("extend").args(["--token", &token, "--ttl", "120", &key]).run().code(0).stdout("").silent();
    let Value::Int(left) = shared().cmd(&["PTTL", &key]) else { panic!("no number") };
    assert!((61_000..=120_000).contains(&left), "{left}");
    // Never shorter.
    to("extend").env("TENURE_TOKEN", &token).args(["--ttl", "1", &key]).run().code(0);
    let Value::Int(left) = shared().cmd(&["PTTL", &key]) else { panic!("no number") };
    assert!(left > 61_000, "{left}");
    to("release").args(["--token", &token, &key]).run().code(0).stdout("").silent();
    assert!(is_free(shared(), &key));
}

#[test]
fn an_acquired_lock_outlives_the_tool_and_ends_with_its_ttl() {
    let key = key();
    let token = acquired(&key, "500ms");
    assert!(token.contains('@'), "{token}");
    eventually(PATIENCE, "it ends by itself", || is_free(shared(), &key));
}

#[test]
fn a_late_release_or_extension_exits_1_or_75_and_changes_nothing() {
    let key = key();
    let token = acquired(&key, "10ms");
    eventually(PATIENCE, "it has ended", || is_free(shared(), &key));
    for _ in 0..2 {
        let ran = to("release").args(["--token", &token, &key]).run();
        ran.code(1).stdout("").says(&[&key, "not released", "not held any more"]);
        let ran = to("extend").args(["--token", &token, "--ttl", "9", &key]).run();
        ran.code(1).stdout("").says(&[&key, "not extended", "not held any more"]);
        assert!(is_free(shared(), &key), "nothing is taken again");
    }
    let other = to("acquire").args(["--ttl", "60", "--label", "other one", &key]).run().code(0);
    for command in [&["release"][..], &["extend", "--ttl", "99"]] {
        let ran = to(command[0]).args(&command[1..]).args(["--token", &token, &key]).run();
        ran.code(75).stdout("").says(&[&key, "held by another, other one"]);
    }
    assert_eq!(value(shared(), &key), Value::Bulk(other.stdout.trim().into()));
    let Value::Int(left) = shared().cmd(&["PTTL", &key]) else { panic!("no number") };
    assert!(left <= 60_000, "{left}");
}

/// A release whose answer was lost is repeated by the caller.
#[test]
fn a_second_release_says_already_released_and_is_no_failure() {
    let key = key();
    let acquire = || to("acquire").args(["--ttl", "60", &key]).run().code(0).stdout;
    let token = acquire();
    let release = || to("release").args(["--token", token.trim(), &key]).run();
    release().code(0).silent();
    let again = || release().code(0).stdout("").says(&[&key, "already released"]);
    again();
    let other = acquire();
    again();
    assert_eq!(value(shared(), &key), Value::Bulk(other.trim().into()));
}

#[test]
fn a_release_without_its_token_exits_64_and_shows_the_holder() {
    let key = key();
    to("release").args([&key]).run().code(64).says(&["nobody holds it", "--token", "TENURE_TOKEN"]);
    to("acquire").args(["--ttl", "60", "--label", "me", &key]).run().code(0);
    to("release").args([&key]).run().code(64).says(&[
        &key,
        "held by me",
        "--token",
        "TENURE_TOKEN",
    ]);
    to("extend").args(["--ttl", "9", &key]).run().code(64).says(&["--token", "TENURE_TOKEN"]);
    for token in ["hunter2", "0123456789abcdef@x"] {
        let ran =
            to("release").args(["--token", token, &key]).run().code(64).says(&["not a token"]);
        assert!(!ran.stderr.contains(token), "{ran:?}");
    }
    assert!(!is_free(shared(), &key));
}

#[test]
fn inside_run_the_token_is_in_the_environment() {
    let key = key();
    let url = shared().url();
    let script = format!("{TENURE} extend --server {url} --ttl 99 $TENURE_KEY");
    Tenure::new().server(shared()).args([&key]).sh(&script).run().code(0).silent();
}

#[test]
fn status_names_the_holder_as_text_and_as_json() {
    let key = key();
    to("status").args([&key]).run().code(1).stdout("free\n").silent();
    let json = to("status").args(["--json", &key]).run().code(1);
    let free = format!(
        "{{\"key\":\"{key}\",\"held\":false,\"holder\":null,\"foreign\":false,\"ttl_ms\":null,\
         \"held_ms\":null,\"last_fence\":null,\"fault\":null,\"source\":\"primary\",\
         \"waiting\":0,\"waiters\":[]}}\n"
    );
    assert_eq!(json.stdout, free);
    to("acquire").args(["--ttl", "60", "--label", "web \"1\"", &key]).run().code(0);
    let ran = to("status").args([&key]).run().code(0).silent();
    assert!(ran.stdout.starts_with("held by web \"1\" for "), "{ran:?}");
    let json = to("status").args(["--json", &key]).run().code(0).stdout;
    for member in ["\"held\":true", "\"holder\":\"web \\\"1\\\"\"", "\"foreign\":false"] {
        assert!(json.contains(member), "{json}");
    }
    // Nothing is in the way of the next grant, and all else is known.
    assert!(!json.replace("\"fault\":null", "").contains("null"), "{json}");
    shared().cmd(&["SET", &key, "go-zero"]);
    let ran = to("status").args([&key]).run().code(0).silent();
    assert!(ran.stdout.contains("go-zero") && ran.stdout.contains("without a TTL"), "{ran:?}");
    assert!(to("status").args(["--json", &key]).run().stdout.contains("\"foreign\":true"));
}

#[test]
fn status_lists_waiters_in_order() {
    let key = key();
    to("acquire").args(["--ttl", "60", "--label", "holder", &key]).run().code(0);
    let waiting = |count: usize| {
        let json = to("status").args(["--json", &key]).run().code(0).stdout;
        json.contains(&format!("\"waiting\":{count},"))
    };
    let mut running = Vec::new();
    for (count, label) in [(1, "first"), (2, "second one")] {
        let run = Tenure::new().server(shared()).args(["--label", label, &key]);
        running.push(run.sh("true").start());
        eventually(PATIENCE, "it waits", || waiting(count));
    }
    let words = to("status").args([&key]).run().code(0).silent().stdout;
    let lines: Vec<_> = words.lines().collect();
    assert!(lines[0].starts_with("held by holder for "), "{words}");
    assert!(lines[1].starts_with("first waits for "), "{words}");
    assert!(lines[2].starts_with("second one waits for "), "{words}");
    assert_eq!(lines.len(), 3, "{words}");
    let json = to("status").args(["--json", &key]).run().code(0).stdout;
    let (_, waiters) = json.split_once("\"waiters\":[{\"holder\":\"first\",").expect(&json);
    assert!(waiters.contains("},{\"holder\":\"second one\",\"waiting_ms\":"), "{json}");
    shared().cmd(&["DEL", &key]);
    // The lock was deleted by hand: the first notices by itself, and the second is handed it.
    for run in running {
        run.wait().code(0).silent();
    }
    to("status").args([&key]).run().code(1).stdout("free\n");
}

#[test]
fn an_undetermined_result_exits_69_for_every_verb() {
    let server = Server::start(ServerKind::Redis70);
    server.kill();
    let token = "0123456789abcdef0123456789abcdef@x";
    for words in [
        &["status", "k"][..],
        &["status", "--json", "k"],
        &["release", "--token", token, "k"],
        &["extend", "--token", token, "--ttl", "9", "k"],
        &["acquire", "--ttl", "9", "k"],
    ] {
        let ran = Tenure::to(words[0]).server(&server).args(&words[1..]).run();
        let socket = server.socket().unwrap().display().to_string();
        ran.code(69).stdout("").says(&[
            "could not determine whether the lock \"k\" is",
            &socket,
            "is it up",
        ]);
    }
}

#[test]
fn the_example_script_runs_under_the_lock_and_releases_it() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/nightly.sh");
    let dir = TempDir::new();
    let store = format!("file://{}", dir.path().join("locks.db").display());
    let bin = Path::new(TENURE).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for servers in [shared().url(), store] {
        let key = key();
        let run = || {
            let mut command = Command::new("sh");
            command.arg(&script).env("PATH", &path).env("NIGHTLY_KEY", &key);
            command.env("TENURE_SERVERS", &servers).current_dir(dir.path()).output().unwrap()
        };
        let ran = run();
        assert!(ran.status.success(), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stdout).contains("report done"), "{ran:?}");
        let free = || Tenure::to("status").url(&servers).args([&key]).run();
        free().code(1).stdout("free\n");
        // Held by another: the script says so and does nothing.
        let acquire = Tenure::to("acquire").url(&servers).args(["--ttl", "60", &key]);
        let token = acquire.run().code(0).stdout;
        let ran = run();
        assert_eq!((ran.status.code(), ran.stdout.is_empty()), (Some(75), true), "{ran:?}");
        let release = Tenure::to("release").url(&servers).args(["--token", token.trim(), &key]);
        release.run().code(0);
    }
}
