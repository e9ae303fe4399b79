//! What the command gets, and that there is only one of them at a time.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use tenure_testkit::TempDir;

use crate::tool::{TENURE, Tenure, key, shared, value};

#[test]
fn the_environment_has_key_token_number_and_ttl() {
    let key = key();
    let socket = shared().socket().unwrap().display().to_string();
    let script = format!(
        "echo $TENURE_KEY $TENURE_TTL_MS; echo $TENURE_FENCE >&2; \
         test \"$TENURE_TOKEN\" = \"$(redis-cli -s {socket} GET {key})\""
    );
    let run = || Tenure::new().server(shared()).args(["--ttl", "1.5m", &key]).sh(&script).run();
    let numbers: Vec<u64> = (0..3)
        .map(|_| run().code(0).stdout(&format!("{key} 90000\n")).stderr.trim().parse().unwrap())
        .collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[test]
fn the_environment_is_inherited_with_five_more_variables() {
    let mut env = Command::new("env");
    env.env("TOOLVAR", "x y").env("TENURE_SERVERS", shared().url());
    let before = env.output().unwrap().stdout;
    let mut run = Command::new(TENURE);
    run.args(["run", &key(), "--", "env"]).env("TOOLVAR", "x y");
    let within = run.env("TENURE_SERVERS", shared().url()).output().unwrap().stdout;
    let names = |output: &[u8]| -> BTreeSet<String> {
        String::from_utf8_lossy(output).lines().map(str::to_owned).collect()
    };
    let (before, within) = (names(&before), names(&within));
    assert_eq!(before.difference(&within).collect::<Vec<_>>(), Vec::<&String>::new());
    let more: Vec<_> =
        within.difference(&before).map(|line| line.split('=').next().unwrap()).collect();
    assert_eq!(
        more,
        ["TENURE_DEADLINES", "TENURE_FENCE", "TENURE_KEY", "TENURE_TOKEN", "TENURE_TTL_MS"]
    );
}

#[test]
fn the_lock_is_held_under_the_label_while_the_command_runs() {
    let key = key();
    let socket = shared().socket().unwrap().display().to_string();
    let script = format!("redis-cli -s {socket} GET {key}");
    let run = Tenure::new().server(shared()).args(["--label", "backup job", &key]).sh(&script);
    let ran = run.run().code(0);
    assert!(ran.stdout.trim().ends_with("@backup%20job"), "{ran:?}");
    assert!(value(shared(), &key).bytes().is_none());
}

#[test]
fn input_outputs_and_arguments_pass_through_unchanged() {
    for words in [&["cat", "-v"][..], &["--", "cat", "-v"]] {
        let run = Tenure::new().server(shared()).args([&key()]).input(b"in\0put\n").args(words);
        run.run().code(0).stdout("in^@put\n").silent();
    }
    let run = Tenure::new().server(shared()).args([&key()]).sh("echo out; echo err >&2");
    let ran = run.run().code(0).stdout("out\n");
    assert_eq!(ran.stderr, "err\n");
    let run = Tenure::new().server(shared()).args([&key(), "--", "printf", "%s|"]);
    run.args(["a b", "", "*", "--"]).run().code(0).stdout("a b||*|--|").silent();
}

#[test]
fn options_after_the_key_belong_to_the_command() {
    for words in [&["echo", "-n", "--ttl", "1"][..], &["--", "echo", "-n", "--ttl", "1"]] {
        let run = Tenure::new().server(shared()).args([&key()]).args(words);
        run.run().code(0).stdout("--ttl 1").silent();
    }
    let run = Tenure::new().server(shared()).args([&key()]).args(["echo", "--", "--help"]);
    run.run().code(0).stdout("-- --help\n");
}

#[test]
fn output_is_not_buffered() {
    let dir = TempDir::new();
    let seen = dir.path().join("seen");
    let script =
        format!("echo first; while [ ! -e {} ]; do sleep 0.02; done; echo second", seen.display());
    let mut run = Command::new(TENURE);
    run.args(["run", "--server", &shared().url(), &key(), "--", "sh", "-c", &script]);
    let mut running = run.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    // The command goes on only when its first line has come out at this end.
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    fs::write(&seen, "").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "second");
    assert!(running.wait().unwrap().success());
}

#[test]
fn contenders_run_one_at_a_time() {
    let dir = TempDir::new();
    let store = format!("file://{}", dir.path().join("locks.db").display());
    for url in [shared().url(), store] {
        let key = key();
        let file = dir.path().join("counter");
        fs::write(&file, "0").unwrap();
        // Read, pause, write: two of them at once would lose an increment.
        let path = file.display();
        let script = format!("n=$(cat {path}); sleep 0.05; echo $((n + 1)) > {path}");
        let contender = || Tenure::new().url(&url).args([&key]).sh(&script).start();
        let running: Vec<_> = (0..5).map(|_| contender()).collect();
        for one in running {
            one.wait().code(0).silent();
        }
        assert_eq!(fs::read_to_string(&file).unwrap().trim(), "5", "{url}");
    }
}

#[test]
fn the_option_local_uses_the_store_of_this_host() {
    let key = key();
    let inner = format!("{TENURE} status --local {key} && {TENURE} run --local -n {key} true");
    let ran = Tenure::new().args(["--local", "--label", "me", &key]).sh(&inner).run();
    let ran = ran.code(75).says(&["is held by me for "]);
    assert!(ran.stdout.starts_with("held by me for "), "{ran:?}");
    Tenure::to("status").args(["--local", &key]).run().code(1).stdout("free\n").silent();
}
