//! The network.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use tenure_testkit::{Gated, Proxy, Raw, Server, ServerKind, eventually, unique_key};

use crate::LIMIT;

fn behind() -> (Server, Proxy) {
    let server = Server::start(ServerKind::Redis70);
    let proxy = Proxy::to(&server);
    (server, proxy)
}

/// Makes sure that nothing comes, for a moment.
fn hears_nothing(raw: &mut Raw) {
    raw.set_patience(Duration::from_millis(30));
    let error = raw.try_receive().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    raw.set_patience(LIMIT);
}

/// The connections of the server, without the one of this request.
fn clients(server: &Server) -> usize {
    server.cmd(&["CLIENT", "LIST"]).text().unwrap().lines().count() - 1
}

#[test]
fn a_good_network_passes_everything() {
    for builder in
        [Server::builder(ServerKind::Redis70), Server::builder(ServerKind::Valkey91).tcp()]
    {
        let server = builder.start();
        let proxy = Proxy::to(&server);
        assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}", proxy.port()));
        let mut raw = proxy.raw();
        let big = vec![b'x'; 3 << 20];
        assert!(raw.cmd(&[b"SET".as_slice(), b"k", &big]).is_ok());
        assert_eq!(raw.cmd(&["GET", "k"]).bytes().unwrap(), big);
        assert_eq!(proxy.connections(), 1);
        drop(raw);
        eventually(LIMIT, "the end is passed on", || {
            proxy.connections() == 0 && clients(&server) == 0
        });
    }
}

#[test]
fn delays_hold_per_direction_and_heal_delivers_in_order() {
    let (server, proxy) = behind();
    let mut raw = proxy.raw();
    let pause = Duration::from_millis(40);

    proxy.delay_requests(pause);
    let started = Instant::now();
    raw.cmd(&["PING"]);
    assert!(started.elapsed() >= pause);
    proxy.delay(pause);
    let started = Instant::now();
    raw.cmd(&["PING"]);
    assert!(started.elapsed() >= 2 * pause);

    proxy.delay_requests(Duration::ZERO);
    proxy.delay_replies(Duration::from_secs(3600));
    for n in 0..5 {
        raw.send(&["INCRBY", "n", &n.to_string()]);
    }
    eventually(LIMIT, "the requests arrive", || server.cmd(&["GET", "n"]).text() == Some("10"));
    hears_nothing(&mut raw);
    proxy.heal();
    for sum in [0, 1, 3, 6, 10] {
        assert_eq!(raw.receive().int(), sum);
    }
}

#[test]
fn a_black_hole_swallows_and_healing_cuts() {
    let (server, proxy) = behind();
    let mut old = proxy.raw();
    assert!(old.cmd(&["SET", "k", "before"]).is_ok());
    proxy.black_hole();
    let mut new = proxy.raw();
    for raw in [&mut old, &mut new] {
        raw.send(&["SET", "k", "after"]);
        hears_nothing(raw);
    }
    assert_eq!(server.cmd(&["GET", "k"]).text(), Some("before"));
    proxy.heal();
    for raw in [&mut old, &mut new] {
        assert!(raw.try_receive().is_err_and(|e| e.kind() != ErrorKind::WouldBlock));
    }
    assert_eq!(proxy.raw().cmd(&["GET", "k"]).text(), Some("before"));
}

#[test]
fn a_cut_resets_both_sides_at_once() {
    let (server, proxy) = behind();
    let mut raw = proxy.raw();
    raw.cmd(&["PING"]);
    proxy.cut();
    assert_eq!(raw.try_receive().unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.connections(), 0);
    eventually(LIMIT, "the server was told", || clients(&server) == 0);
    assert_eq!(proxy.raw().cmd(&["PING"]).text(), Some("PONG"));
    assert_eq!(proxy.accepted(), 2);
}

#[test]
fn refusing_spares_existing_connections_and_keeps_the_port() {
    let (_server, proxy) = behind();
    let mut raw = proxy.raw();
    raw.cmd(&["PING"]);
    for _ in 0..3 {
        proxy.refuse();
        let refused = Raw::try_connect(&proxy.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(raw.cmd(&["PING"]).text(), Some("PONG"));
        proxy.heal();
        assert_eq!(proxy.raw().cmd(&["PING"]).text(), Some("PONG"));
    }
    proxy.refuse();
}

#[test]
fn half_open_leaves_the_server_side() {
    let (server, proxy) = behind();
    let mut raw = proxy.raw();
    raw.cmd(&["CLIENT", "SETNAME", "orphan"]);
    let orphans = || {
        let list = server.cmd(&["CLIENT", "LIST"]);
        list.text().unwrap().matches("name=orphan").count()
    };
    proxy.half_open();
    assert_eq!(raw.try_receive().unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.connections(), 0);
    assert_eq!(proxy.raw().cmd(&["PING"]).text(), Some("PONG"));
    assert_eq!(orphans(), 1);
    proxy.heal();
    eventually(LIMIT, "the server was told", || orphans() == 0);
}

#[test]
fn dropped_replies_were_executed() {
    let (server, proxy) = behind();
    let key = unique_key("count");
    let mut raw = proxy.raw();

    proxy.drop_next_replies(2);
    for _ in 0..3 {
        raw.send(&["INCR", &key]);
    }
    assert_eq!(raw.receive().int(), 3);

    proxy.drop_replies();
    raw.send(&["INCR", &key]);
    eventually(LIMIT, "it was executed", || server.cmd(&["GET", &key]).int() == 4);
    hears_nothing(&mut raw);
    proxy.heal();
    assert_eq!(raw.cmd(&["INCR", &key]).int(), 5);

    proxy.drop_next_replies_then_cut(1);
    assert_eq!(raw.try_cmd(&["INCR", &key]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.cmd(&["GET", &key]).int(), 6);
    assert_eq!(proxy.raw().cmd(&["INCR", &key]).int(), 7);
}

#[test]
fn late_requests_arrive_when_they_are_delivered() {
    let (server, proxy) = behind();
    let key = unique_key("late");
    let mut raw = proxy.raw();
    raw.cmd(&["PING"]);
    proxy.delay_requests(LIMIT * 10);
    raw.send(&["INCR", &key]);
    eventually(LIMIT, "it is on its way", || proxy.requests_on_the_way() == 1);
    proxy.half_open();
    assert_eq!(raw.try_receive().unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(server.cmd(&["GET", &key]).is_nil());
    proxy.deliver_late();
    eventually(LIMIT, "it arrives", || server.cmd(&["GET", &key]).text() == Some("1"));
}

#[test]
fn a_gate_lets_the_given_number_of_replies_through() {
    let (_server, proxy) = behind();
    let mut raw = proxy.raw();
    proxy.gate_replies(1, Gated::Held);
    raw.send(&["ECHO", "a"]);
    raw.send(&["ECHO", "b"]);
    assert_eq!(raw.receive().text(), Some("a"));
    eventually(LIMIT, "the gate", || proxy.gate_was_met());
    hears_nothing(&mut raw);
    proxy.heal();
    assert_eq!(raw.receive().text(), Some("b"));

    proxy.gate_replies(1, Gated::Swallowed);
    for word in ["c", "d", "e"] {
        raw.send(&["ECHO", word]);
    }
    assert_eq!(raw.receive().text(), Some("c"));
    hears_nothing(&mut raw);
    proxy.heal();
    assert_eq!(raw.try_receive().unwrap_err().kind(), ErrorKind::ConnectionReset);

    proxy.gate_replies(1, Gated::Cut);
    let mut raw = proxy.raw();
    assert_eq!(raw.cmd(&["ECHO", "f"]).text(), Some("f"));
    assert_eq!(raw.try_cmd(&["ECHO", "g"]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.raw().cmd(&["ECHO", "h"]).text(), Some("h"));
}

#[test]
fn bytes_one_at_a_time_still_arrive() {
    let (_server, proxy) = behind();
    proxy.split_bytes();
    let mut raw = proxy.raw();
    let text = "some text that is longer than one byte";
    assert_eq!(raw.cmd(&["ECHO", text]).text(), Some(text));
}

#[test]
fn a_dead_server_behind_the_proxy_causes_a_reset() {
    let (server, proxy) = behind();
    let mut raw = proxy.raw();
    raw.cmd(&["PING"]);
    server.kill();
    assert!(raw.try_receive().is_err_and(|e| e.kind() != ErrorKind::WouldBlock));
    assert!(proxy.raw().try_cmd(&["PING"]).is_err());
    assert_eq!(proxy.accepted(), 2, "who found no server counts");
    server.start_again();
    assert_eq!(proxy.raw().cmd(&["PING"]).text(), Some("PONG"));
}
