//! A lease that is lost while the command runs.

use std::{
    fs,
    time::{Duration, Instant, SystemTime},
};

use rustix::process::Signal;
use tenure_testkit::{Proxy, Server, ServerKind, TempDir, Value, eventually};

use crate::tool::{PATIENCE, TENURE, Tenure, is_free, is_running, key, pid_in, shared, until_told};

/// A command that prints a line at SIGTERM, and then exits with success. What its shell
/// says about the end of `sleep`, which gets the signal as well, is not of interest.
const OBEDIENT: &str =
    "exec 2>/dev/null; trap 'echo told; exit 0' TERM; while :; do sleep 0.02; done";

#[test]
fn a_deleted_key_ends_the_command_and_is_not_recreated() {
    let key = key();
    let mut monitor = shared().monitor();
    let run = Tenure::new().server(shared()).args(["--ttl", "1", &key]).sh(OBEDIENT);
    let running = run.start().until_held(&key);
    shared().cmd(&["DEL", &key]);
    running.wait().code(70).stdout("told\n").says(&["lost the lock", &key, "gone"]);
    assert!(is_free(shared(), &key));
    let grants = monitor.so_far();
    let grants = grants.iter().filter(|line| line.contains("lua") && line.contains("\"SET\""));
    let ours = grants.filter(|line| line.contains(&format!("\"{key}\""))).count();
    assert_eq!(ours, 1, "it was granted once");
}

#[test]
fn another_holder_is_named_and_left_alone() {
    let key = key();
    let run = Tenure::new().server(shared()).args(["--ttl", "1", &key]).sh(OBEDIENT);
    let running = run.start().until_held(&key);
    shared().cmd(&["SET", &key, "somebody", "PX", "60000"]);
    running.wait().code(70).stdout("told\n").says(&["lost the lock", &key, "somebody"]);
    assert!(!is_free(shared(), &key));
}

#[test]
fn a_command_that_ends_by_itself_after_the_loss_also_exits_70() {
    let key = key();
    let socket = shared().socket().unwrap().display().to_string();
    let script = format!("redis-cli -s {socket} DEL {key}");
    let run = Tenure::new().server(shared()).args([&key]).sh(&script);
    run.run().code(70).stdout("1\n").says(&["lost the lock", &key, "gone"]);
}

#[test]
fn the_whole_group_ends_before_the_tool_does() {
    let dir = TempDir::new();
    let (polite, stubborn) = (dir.path().join("polite"), dir.path().join("stubborn"));
    // A shell that waits, a child of it that TERM ends, and one that only KILL ends.
    let script = format!(
        "sleep 300 & echo $! > {}; (trap '' TERM; exec sleep 300) & echo $! > {}; sleep 300; true",
        polite.display(),
        stubborn.display()
    );
    let key = key();
    let run = Tenure::new().server(shared()).args(["--ttl", "1", &key]).sh(&script).start();
    let left = [pid_in(&polite), pid_in(&stubborn)];
    eventually(PATIENCE, "the last of them sleeps", || {
        let line = fs::read(format!("/proc/{}/cmdline", left[1].as_raw_nonzero()));
        line.is_ok_and(|line| line.starts_with(b"sleep"))
    });
    shared().cmd(&["DEL", &key]);
    run.wait().code(70).says(&["lost the lock", &key, "gone"]);
    assert!(!left.iter().any(|pid| is_running(*pid)), "something of the group goes on");
}

#[test]
fn max_hold_ends_the_command_and_frees_the_lock() {
    let key = key();
    let run = Tenure::new().server(shared()).args(["--max-hold", "500ms", &key]).sh(OBEDIENT);
    run.run().code(70).stdout("told\n").says(&[
        "lost the lock",
        &key,
        "longest time",
        "--max-hold",
    ]);
    eventually(PATIENCE, "the lock is free again", || is_free(shared(), &key));
}

#[test]
fn kill_after_must_fit_into_the_ttl() {
    let mut monitor = shared().monitor();
    let key = key();
    for (ttl, kill_after) in [("6", "2.9"), ("1", "1"), ("500ms", "130ms")] {
        let options = ["--ttl", ttl, "--kill-after", kill_after, &key];
        let ran = Tenure::new().server(shared()).args(options).sh("echo ran").run();
        ran.code(64).stdout("").says(&["--kill-after is ", "at most", "longer --ttl"]);
    }
    let seen = monitor.so_far();
    assert!(!seen.iter().any(|line| line.contains(&key)), "{seen:?}");
    let options = ["--ttl", "6", "--kill-after", "2.8", &key];
    Tenure::new().server(shared()).args(options).sh("echo ran").run().code(0).stdout("ran\n");
}

/// The first renewal is sent at a third of the validity, and its answer takes its time.
#[test]
fn the_longest_kill_after_ends_no_command_on_a_slow_network() {
    let server = Server::builder(ServerKind::Redis70).tcp().start();
    let proxy = Proxy::to(&server);
    proxy.delay(Duration::from_millis(5));
    for ttl in ["2", "500ms"] {
        let run = |kill_after: &str| {
            let options = ["--ttl", ttl, "--kill-after", kill_after, "k"];
            Tenure::new().url(&proxy.url()).args(options)
        };
        let refused = run("1h").sh("true").run().code(64);
        let (_, most) = refused.stderr.split_once("it can be ").unwrap();
        let most = format!("{}ms", most.split_once(' ').unwrap().0);
        let dir = TempDir::new();
        let (ready, done, script) = until_told(&dir);
        let running = run(&most).sh(&format!("{script}; exit 7")).start();
        pid_in(&ready);
        let end = || match server.cmd(&["PEXPIRETIME", "k"]) {
            Value::Int(end) => end,
            other => panic!("no number but {other:?}"),
        };
        let first = end();
        eventually(PATIENCE, "it is renewed, and outlives its first TTL", || {
            let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
            end() < 0 || i128::from(first) < i128::try_from(now).unwrap()
        });
        fs::write(done, "").unwrap();
        running.wait().code(7).silent();
    }
}

/// One that stands still while the machine is suspended would let the command outlive its lease.
#[cfg(target_os = "linux")]
#[test]
fn kill_after_counts_suspended_time() {
    let key = key();
    let dir = TempDir::new();
    let ready = dir.path().join("ready");
    let script = format!("trap '' TERM; echo $$ > {}; exec sleep 300", ready.display());
    let options = ["--ttl", "60", "--kill-after", "25", &key];
    let running = Tenure::new().server(shared()).args(options).sh(&script).start();
    pid_in(&ready);
    // No timer of the lease is this far away: the next renewal is nearer, and the end is not.
    let kill = || timers(&running).into_iter().find(|(_, left)| (21..=25).contains(left));
    assert_eq!(kill(), None);
    shared().cmd(&["DEL", &key]);
    eventually(PATIENCE, "the kill is set", || kill().is_some());
    // CLOCK_BOOTTIME.
    assert_eq!(kill().unwrap().0, 7);
}

/// The clocks of the tool's timers, and their seconds left.
#[cfg(target_os = "linux")]
fn timers(running: &crate::tool::Running) -> Vec<(u32, u64)> {
    let all = fs::read_dir(format!("/proc/{}/fdinfo", running.id())).unwrap().flatten();
    let texts = all.filter_map(|one| fs::read_to_string(one.path()).ok());
    texts
        .filter_map(|text| {
            let (_, clock) = text.split_once("clockid: ")?;
            let (_, left) = text.split_once("it_value: (")?;
            let clock = clock.lines().next()?.trim().parse().ok()?;
            Some((clock, left.split_once(',')?.0.parse().ok()?))
        })
        .collect()
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_after_its_grace() {
    let server = Server::start(ServerKind::Redis70);
    let dir = TempDir::new();
    let ready = dir.path().join("ready");
    let script =
        format!("trap '' TERM; echo $$ > {}; while :; do sleep 0.02; done", ready.display());
    let options = ["--ttl", "3", "--kill-after", "500ms", "k"];
    let running = Tenure::new().server(&server).args(options).sh(&script).start();
    let child = pid_in(&ready);
    let frozen = server.freeze_process();
    // No renewal can have succeeded after this.
    let last = Instant::now();
    eventually(PATIENCE, "the command is killed", || !is_running(child));
    let took = last.elapsed();
    assert!(took.as_millis() < 3_000, "killed {took:?} after the last good renewal, or later");
    running.wait().code(70).says(&["lost the lock", "ran out"]);
    frozen.thaw();
}

#[test]
fn killing_the_tool_kills_the_command_and_the_lock_ends_with_its_ttl() {
    let key = key();
    let dir = TempDir::new();
    let ready = dir.path().join("ready");
    let script = format!("echo $$ > {}; exec sleep 300", ready.display());
    let running = Tenure::new().server(shared()).args(["--ttl", "1", &key]).sh(&script).start();
    let child = pid_in(&ready);
    running.signal(Signal::KILL);
    assert!(running.wait().code.is_none());
    eventually(PATIENCE, "the command has died with the tool", || !is_running(child));
    let next = Tenure::new().server(shared()).args(["--wait", "20s", &key]).sh("echo next").run();
    next.code(0).stdout("next\n").silent();
}

/// Its work went on without the lock, and the program that released it had the token. With a store
/// the tool learns of it only when it releases the lock itself.
#[test]
fn a_command_that_releases_its_own_lock_is_reported() {
    let dir = TempDir::new();
    let store = format!("file://{}", dir.path().join("locks.db").display());
    let script = format!("{TENURE} release --server {store} $TENURE_KEY");
    let run = Tenure::new().url(&store).args(["--ttl", "10m", "k"]).sh(&script).run();
    run.code(70).says(&["lost the lock \"k\"", "the lock was released", "TENURE_TOKEN"]);
}
