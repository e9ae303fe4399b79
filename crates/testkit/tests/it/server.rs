//! Servers: starting, stopping, killing, watching.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_testkit::{Raw, Server, ServerKind, Value, eventually, unique_key};

use crate::LIMIT;

#[test]
fn every_kind_starts_and_is_what_it_says() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let info = server.cmd(&["INFO", "server"]);
        let field = match kind {
            ServerKind::Redis70 => "redis_version:7.",
            ServerKind::Valkey81 => "valkey_version:8.1.",
            ServerKind::Valkey91 => "valkey_version:9.1.",
        };
        assert!(info.text().unwrap().contains(field), "{kind}: {info:?}");
        assert!(server.url().starts_with("redis+unix:///"), "{}", server.url());
        assert!(server.cmd(&["DEBUG", "SLEEP", "0"]).is_ok(), "{kind} has DEBUG");
        assert_eq!(server.port(), None);
    }
}

#[test]
fn tcp_password_and_arguments() {
    let server = Server::builder(ServerKind::Redis70)
        .tcp()
        .password("pa ss")
        .arg("--maxmemory")
        .arg("3mb")
        .args(["--maxmemory-policy", "allkeys-lru"])
        .start();
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port().unwrap()));
    let maxmemory = server.cmd(&["CONFIG", "GET", "maxmemory"]);
    assert_eq!(maxmemory.array()[1].int(), 3 << 20);
    let stranger = Raw::tcp(server.port().unwrap()).cmd(&["GET", "k"]);
    assert!(stranger.error().unwrap().starts_with("NOAUTH"), "{stranger:?}");
}

#[test]
fn dropping_leaves_neither_process_nor_directory() {
    let server = Server::start(ServerKind::Redis70);
    let (pid, socket) = (server.pid(), server.socket().unwrap().to_owned());
    drop(server);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert!(!socket.parent().unwrap().exists());
}

#[test]
fn a_server_dies_with_its_test_process() {
    const CHILD: &str = "TENURE_TESTKIT_CHILD";
    const NAME: &str = "server::a_server_dies_with_its_test_process";
    if std::env::var_os(CHILD).is_some() {
        // A thread of its own, which ends: the server must outlive that one.
        let start = || Server::start(ServerKind::Redis70);
        let server = std::thread::spawn(start).join().unwrap();
        std::fs::write(std::env::var_os(CHILD).unwrap(), server.pid().to_string()).unwrap();
        assert!(server.cmd(&["PING"]).text().is_some());
        loop {
            std::thread::park();
        }
    }

    let dir = tenure_testkit::TempDir::new();
    let note = dir.path().join("pid");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([NAME, "--exact", "--nocapture"])
        .env(CHILD, &note)
        .env("TMPDIR", dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    eventually(LIMIT, "the child has started its server", || {
        pid = std::fs::read_to_string(&note).unwrap_or_default();
        !pid.is_empty()
    });
    let server = Path::new("/proc").join(pid);
    assert!(server.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    eventually(LIMIT, "the server is dead", || {
        // Its new parent may take its time to collect it.
        let stat = std::fs::read_to_string(server.join("stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
}

#[test]
fn a_frozen_process_accepts_and_does_not_answer() {
    let server = Server::start(ServerKind::Redis70);
    let mut early = server.raw();
    let frozen = server.freeze_process();
    let mut late = server.raw();
    for raw in [&mut early, &mut late] {
        raw.set_patience(Duration::from_millis(30));
        raw.send(&["PING"]);
        assert!(raw.try_receive().is_err());
    }
    frozen.thaw();
    for raw in [&mut early, &mut late] {
        raw.set_patience(LIMIT);
        assert_eq!(raw.receive().text(), Some("PONG"));
    }
}

#[test]
fn a_frozen_process_can_be_killed_and_started_again() {
    let server = Server::start(ServerKind::Valkey81);
    let frozen = server.freeze_process();
    server.kill();
    server.start_again();
    drop(frozen);
    assert_eq!(server.cmd(&["PING"]).text(), Some("PONG"));
}

#[test]
fn data_survives_a_kill_only_when_durable() {
    for kind in ServerKind::ALL {
        for durable in [false, true] {
            let builder = Server::builder(kind);
            let builder = if durable { builder.durable() } else { builder.tcp() };
            let server = builder.start();
            let (url, pid) = (server.url(), server.pid());
            server.cmd(&["SET", "k", "v"]);

            server.kill();
            assert!(Raw::try_connect(server.address()).is_err());
            server.start_again();
            assert_eq!(server.url(), url);
            assert_ne!(server.pid(), pid);
            let kept = server.cmd(&["GET", "k"]);
            assert_eq!(kept.text(), durable.then_some("v"), "{kind}");

            server.restart_empty();
            assert_eq!(server.cmd(&["DBSIZE"]).int(), 0, "{kind}");
        }
    }
}

#[test]
fn a_monitor_misses_nothing() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let key = unique_key("watched");
        let mut monitor = server.monitor();
        for n in 0..100 {
            server.cmd(&["SET", &key, &n.to_string()]);
        }
        let seen = monitor.lines_until(|line| line.contains("\"49\""));
        assert_eq!(seen.iter().filter(|line| line.contains("\"SET\"")).count(), 50);
        server.cmd(&["EVAL", "return redis.call('GET', KEYS[1])", "1", &key]);
        let rest = monitor.stop();
        assert_eq!(rest.iter().filter(|line| line.contains("\"SET\"")).count(), 50);
        assert!(rest.last().unwrap().contains("lua] \"GET\""), "{rest:?}");
    }
}

#[test]
fn pipelined_commands_are_answered_in_order() {
    let server = Server::start(ServerKind::Valkey91);
    let mut raw = server.raw();
    for n in 0..10 {
        raw.send(&["ECHO", &n.to_string()]);
    }
    for n in 0..10 {
        assert_eq!(raw.receive().int(), n);
    }
    raw.send(&["NONSENSE"]);
    assert!(matches!(raw.receive(), Value::Error(text) if text.starts_with("ERR unknown")));
}

#[test]
fn a_server_reports_errors_in_its_arguments() {
    let start = || Server::builder(ServerKind::Redis70).arg("--no-such-thing").arg("1").start();
    let panic = std::panic::catch_unwind(start).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("no-such-thing"), "{text}");
}
