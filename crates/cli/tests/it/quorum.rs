//! Five servers, some of which are killed while the command runs.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, SystemTime},
};

use rustix::process::Signal;
use tenure_testkit::{Proxy, Server, ServerKind, TempDir, Value, eventually, scale};

use crate::tool::{PATIENCE, Tenure, is_free, is_running, key, opened, pid_in, until_told};

/// Five servers of all kinds, on ports of their own.
struct Nodes(Vec<Server>);

impl Nodes {
    fn start() -> Self {
        let kinds = ServerKind::ALL.into_iter().cycle().take(5);
        let nodes: Vec<_> = kinds.map(|kind| Server::builder(kind).tcp().start()).collect();
        opened(&nodes);
        Self(nodes)
    }

    /// They are young, and yet have forgotten nothing.
    fn urls(&self) -> String {
        let urls = self.0.iter().map(|node| format!("{}?durable=yes", node.url()));
        urls.collect::<Vec<_>>().join(",")
    }

    /// When each key ends, in milliseconds since the epoch; negative where there is none.
    fn ends(&self, key: &str) -> Vec<i64> {
        let end = |node: &Server| match node.cmd(&["PEXPIRETIME", key]) {
            Value::Int(end) => end,
            other => panic!("no number but {other:?}"),
        };
        self.0.iter().map(end).collect()
    }
}

#[test]
fn a_command_keeps_running_when_two_of_five_servers_are_killed() {
    let mut nodes = Nodes::start();
    let (urls, key, dir) = (nodes.urls(), key(), TempDir::new());
    let (ready, done, script) = until_told(&dir);
    let script = format!("{script}; exit 7");
    let status = || Tenure::to("status").env("TENURE_SERVERS", &urls).args([&key]).run();
    let options = ["--ttl", "2", key.as_str()];
    let running = Tenure::new().env("TENURE_SERVERS", &urls).args(options).sh(&script).start();
    let child = pid_in(&ready);
    nodes.0.truncate(3);
    // Three more TTLs than the key had when the two were killed.
    let until = nodes.ends(&key).iter().max().unwrap() + 6_000;
    let renewed = || nodes.ends(&key).iter().all(|&end| end > until);
    eventually(PATIENCE, "the three others are renewed", renewed);
    assert!(is_running(child));
    let held = status().code(0);
    assert!(held.stdout.starts_with("held by "), "{held:?}");
    fs::write(done, "").unwrap();
    running.wait().code(7).silent();
    let free = status().code(1);
    assert!(free.stdout.starts_with("free\n"), "it is released before the tool ends: {free:?}");
    for node in &nodes.0 {
        eventually(PATIENCE, "it is released everywhere", || is_free(node, &key));
    }
}

#[test]
fn a_command_ends_before_its_lease_when_three_of_five_servers_are_killed() {
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| (0..scale(1, 20)).for_each(|_| lose_three()));
        }
    });
}

/// The client reconnects to the third server while the others confirm the release.
#[test]
fn a_release_reaches_a_server_that_returns_while_the_others_confirm() {
    let (nodes, key, dir) = (Nodes::start(), key(), TempDir::new());
    let third = Server::builder(ServerKind::Redis70).tcp().password(PASSWORD).start();
    let proxy = Proxy::to(&third);
    let through_proxy = format!("redis://:{PASSWORD}@127.0.0.1:{}", proxy.port());
    Tenure::to("init").url(&through_proxy).args(["--max-ttl", "1"]).run().code(0);
    let urls = [nodes.0[0].url(), nodes.0[1].url(), through_proxy];
    let urls = urls.map(|url| url + "?durable=yes").join(",");
    let (ready, done, script) = until_told(&dir);
    let running = Tenure::new().env("TENURE_SERVERS", &urls).args(["--ttl", "10m", &key]);
    let running = running.sh(&script).start();
    pid_in(&ready);
    let has_key = || !is_free(&third, &key) && nodes.ends(&key)[..2].iter().all(|&end| end > 0);
    eventually(PATIENCE, "all three have the key", has_key);
    // The client sends nothing before the reply to its login, so when the others have confirmed the
    // release, this server has yet to be sent it.
    proxy.delay_replies(Duration::from_millis(50));
    proxy.cut();
    fs::write(done, "").unwrap();
    running.wait().code(0).silent();
    eventually(PATIENCE, "it is released there, too", || is_free(&third, &key));
}

const PASSWORD: &str = "secret";

/// A hung server answers nothing, and the tool asks it for the holder.
#[test]
fn a_signal_ends_a_wait_while_a_hung_server_is_inspected() {
    let (nodes, key) = (Nodes::start(), key());
    let urls = nodes.urls();
    let hold = Tenure::new().env("TENURE_SERVERS", &urls).args([&key]).sh("exec sleep 300").start();
    eventually(PATIENCE, "it is held", || nodes.ends(&key).iter().all(|&end| end > 0));
    let frozen = nodes.0[4].freeze_process();
    let waiting =
        Tenure::new().env("TENURE_SERVERS", &urls).args(["--verbose", &key]).sh("echo no");
    let waiting = waiting.start();
    let said = waiting.first_words();
    assert!(said.contains("which is held by "), "{said}");
    waiting.signal(Signal::TERM);
    assert_eq!(waiting.wait().code(143).stdout("").stderr, said);
    drop(frozen);
    hold.signal(Signal::TERM);
    hold.wait().code(143);
}

/// A command and its child, both deaf to TERM, write down when they are alive.
fn lose_three() {
    let mut nodes = Nodes::start();
    let (urls, key, dir) = (nodes.urls(), key(), TempDir::new());
    let (alive, pid) = (dir.path().join("alive"), dir.path().join("pid"));
    let write = format!("while :; do date +%s%3N >> {}; sleep 0.02; done", alive.display());
    let script =
        format!("exec 2>/dev/null; trap '' TERM; (echo $$ > {}; {write}) & {write}", pid.display());
    let options = ["--ttl", "1.5", "--kill-after", "600ms", key.as_str()];
    let running = Tenure::new().env("TENURE_SERVERS", &urls).args(options).sh(&script).start();
    let child = pid_in(&pid);
    eventually(PATIENCE, "the command writes", || fs::exists(&alive).unwrap_or(false));
    eventually(PATIENCE, "all have the key", || nodes.ends(&key).iter().all(|&end| end > 0));
    // Before any of them is killed: the last renewal that a majority can answer begins later.
    let first = nodes.ends(&key);
    nodes.0.truncate(2);
    let killed = i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    assert!(first.iter().all(|&end| end > killed), "it was held when the three were killed");
    running.wait().code(70).says(&["lost the lock", &key, "ran out"]);
    assert!(!is_running(child));
    let last = last_line(&alive);
    assert!(last < killed + 1_500, "alive {} ms after the end", last - killed - 1_500);
    assert!(last > killed, "it went on without them for a while");
    let status = Tenure::to("status").env("TENURE_SERVERS", &urls).args([&key]).run().code(69);
    assert_eq!(status.stdout.matches("may vote").count(), 2, "{status:?}");
    assert_eq!(status.stdout.matches("cannot be reached").count(), 3, "{status:?}");
    status.says(&["could not determine whether the lock", "cannot be reached"]);
}

/// The last moment that was written in full: the kill may have cut a line short.
fn last_line(file: &Path) -> i64 {
    let text = fs::read_to_string(file).unwrap();
    text.lines().rfind(|line| line.len() == 13).unwrap().parse().unwrap()
}
