//! The wall clock of a server.

use std::time::Duration;

use tenure_testkit::{Clock, Server, ServerKind};

/// What TIME says, in microseconds.
fn time_us(server: &Server) -> i64 {
    let time = server.cmd(&["TIME"]);
    time.array()[0].int() * 1_000_000 + time.array()[1].int()
}

#[test]
fn a_frozen_clock_is_exact_on_every_kind() {
    for kind in ServerKind::ALL {
        let server = Server::builder(kind).shim().start();
        let clock = server.clock();

        let before = clock.now_us();
        let shown = time_us(&server);
        assert!(before <= shown && shown <= clock.now_us(), "{kind}: a clock that runs");

        let frozen = clock.freeze();
        for _ in 0..3 {
            assert_eq!(time_us(&server), frozen, "{kind}");
        }
        clock.advance(Duration::from_micros(1_500_001));
        assert_eq!(time_us(&server), frozen + 1_500_001, "{kind}");
        clock.step_ms(-5_000);
        assert_eq!(time_us(&server), frozen + 1_500_001 - 5_000_000, "{kind}");
        clock.freeze_at_us(1_234_567_890_123_456);
        assert_eq!(time_us(&server), 1_234_567_890_123_456, "{kind}");

        clock.thaw();
        let shown = time_us(&server);
        assert!(1_234_567_890_123_456 <= shown && shown <= clock.now_us(), "{kind}: thawed");
        clock.step_ms(-1_000_000);
        assert!(time_us(&server) <= clock.now_us(), "{kind}: stepped back while it runs");
        assert!(time_us(&server) < 1_234_567_890_123_456 - 900_000_000, "{kind}");
    }
}

#[test]
fn keys_expire_by_the_frozen_clock_to_the_millisecond() {
    for kind in ServerKind::ALL {
        let server = Server::builder(kind).shim().start();
        let clock = server.clock();
        clock.freeze_at_us(1_700_000_000_000_000);
        server.cmd(&["SET", "k", "v", "PX", "1000"]);
        assert_eq!(server.cmd(&["PTTL", "k"]).int(), 1000, "{kind}");
        clock.advance(Duration::from_millis(400));
        assert_eq!(server.cmd(&["PTTL", "k"]).int(), 600, "{kind}");
        clock.step_ms(-400);
        assert_eq!(server.cmd(&["PTTL", "k"]).int(), 1000, "{kind}");
        clock.advance(Duration::from_secs(1));
        assert_eq!(server.cmd(&["GET", "k"]).text(), Some("v"), "{kind}: alive at its deadline");
        clock.step_ms(1);
        assert!(server.cmd(&["GET", "k"]).is_nil(), "{kind}: gone after its deadline");
    }
}

#[test]
fn scripts_see_the_frozen_clock() {
    for kind in ServerKind::ALL {
        let server = Server::builder(kind).shim().start();
        let frozen = server.clock().freeze();
        let script = "local t = redis.call('TIME') return t[1] .. string.format('%06d', t[2])";
        assert_eq!(server.cmd(&["EVAL", script, "0"]).int(), frozen, "{kind}");
    }
}

#[test]
fn servers_may_share_a_clock_and_keep_it_over_a_restart() {
    let clock = Clock::new();
    clock.freeze_at_us(1_600_000_000_000_000);
    let servers = ServerKind::ALL.map(|kind| Server::builder(kind).clock(clock.clone()).start());
    clock.step_ms(1);
    for server in &servers {
        assert_eq!(time_us(server), 1_600_000_000_001_000);
        server.restart_empty();
        assert_eq!(time_us(server), 1_600_000_000_001_000);
    }
}

#[test]
fn many_changes_are_never_seen_torn() {
    let server = Server::builder(ServerKind::Redis70).shim().start();
    let clock = server.clock();
    let mut raw = server.raw();
    // Every byte of the time changes, so that a mixture of two would be far from both.
    let times = [0x0101_0101_0101_0101_i64 >> 8, 0x0002_0202_0202_0202];
    for n in 0..2_000 {
        let at_us = times[n % 2];
        clock.freeze_at_us(at_us);
        let time = raw.cmd(&["TIME"]);
        assert_eq!(time.array()[0].int() * 1_000_000 + time.array()[1].int(), at_us);
    }
}
