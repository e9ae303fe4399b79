//! Connections that end, hang and come back.

use std::{
    net::{Ipv4Addr, TcpListener},
    thread,
    time::Instant,
};

use tenure::{NodeErrorKind, ReleaseError, Wait, blocking};
use tenure_testkit::{FakeAnswer, FakeServer, Proxy, eventually, unique_key};

use super::{LIMIT, TTL, connect, kind_of, ms, private, shared, value};
use crate::fake::{self, ScriptRequest};

fn waiting(client: &blocking::Client) -> blocking::Lock {
    client.lock(unique_key("reconnect")).ttl(TTL * 100).wait(Wait::Within(LIMIT))
}

/// A server that is down fails the first op, and not `connect`.
#[test]
fn connecting_succeeds_while_a_server_is_down() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = nobody.local_addr().unwrap().port();
    drop(nobody);
    for url in [format!("redis://127.0.0.1:{port}"), "redis+unix:///nonexistent/socket".into()] {
        let client = connect(&url);
        for _ in 0..3 {
            let lock = client.lock(unique_key("down"));
            assert_eq!(kind_of(lock.try_acquire()), NodeErrorKind::Unreachable);
            assert!(lock.inspect().is_err());
        }
        // Without a limit, but no server ever named a holder: a wrong address, most likely.
        assert_eq!(kind_of(client.lock(unique_key("down")).acquire()), NodeErrorKind::Unreachable);
        client.close().unwrap();
    }
}

/// The same client serves as soon as the server does.
#[test]
fn a_server_that_comes_up_later_is_found() {
    let server = private().start();
    let client = connect(&server.url());
    server.kill();
    assert_eq!(kind_of(waiting(&client).try_acquire()), NodeErrorKind::Unreachable);
    thread::scope(|scope| {
        let attempt = scope.spawn(|| waiting(&client).acquire());
        server.start_again();
        attempt.join().unwrap().unwrap().release().unwrap();
    });
}

/// After each trouble the same client works again, and its leases are as they were.
#[test]
fn the_connection_is_reopened_after_each_failure() {
    let proxy = Proxy::to(shared());
    let client = connect(&proxy.url());
    let held = waiting(&client).acquire().unwrap();
    let troubles: [(&str, &dyn Fn()); 5] = [
        ("cut", &|| proxy.cut()),
        ("half open", &|| proxy.half_open()),
        ("black hole", &|| proxy.black_hole()),
        ("no replies", &|| proxy.drop_replies()),
        ("refused", &|| {
            proxy.refuse();
            proxy.cut();
        }),
    ];
    for (name, begin) in troubles {
        begin();
        // Whatever it says, it is not that another holds the lock.
        let attempt = client.lock(unique_key("in-trouble")).ttl(ms(400)).try_acquire();
        assert!(!matches!(attempt, Ok(None)), "{name}: contention");
        proxy.heal();
        waiting(&client).acquire().expect(name).release().expect(name);
        held.extend(TTL * 200).expect(name);
        assert_eq!(held.ensure_held().map_err(|loss| loss.reason), Ok(()), "{name}");
    }
    let key = std::str::from_utf8(held.key().as_bytes()).unwrap().to_owned();
    assert_eq!(value(shared(), &key).as_deref(), Some(held.token().as_bytes()));
    held.release().unwrap();
}

/// The first connection takes commands and never answers any; the peer is still alive, so
/// the system will not end it.
#[test]
fn two_time_outs_in_a_row_end_a_connection() {
    let fake = FakeServer::tcp(|connection| {
        move |command: Vec<Vec<u8>>| match ScriptRequest::read(&command) {
            Some(_) if connection == 0 => FakeAnswer::Send(Vec::new()),
            _ => fake::obey(&command),
        }
    });
    let client = connect(&fake.url());
    let lock = client.lock(unique_key("silent")).ttl(ms(200));
    assert_eq!(kind_of(lock.try_acquire()), NodeErrorKind::TimedOut);
    let guard = lock.wait(Wait::Within(LIMIT)).acquire().unwrap();
    assert!(fake.accepted() >= 2);
    drop(guard);
}

/// The first connection answers its first script together with the next: late, but it does.
fn answers_late_once() -> FakeServer {
    FakeServer::tcp(|connection| {
        let (mut is_next, mut late) = (connection == 0, Vec::new());
        move |command: Vec<Vec<u8>>| match (ScriptRequest::read(&command), fake::obey(&command)) {
            (Some(_), FakeAnswer::Send(reply)) if std::mem::take(&mut is_next) => {
                late = reply;
                FakeAnswer::Send(Vec::new())
            }
            (_, FakeAnswer::Send(reply)) => {
                FakeAnswer::Send([std::mem::take(&mut late), reply].concat())
            }
            (_, answer) => answer,
        }
    })
}

/// A waiter's next op must not meet the one before on the same connection, where it may be carried
/// out later: so a waiter does not wait for a second time-out.
#[test]
fn one_time_out_ends_the_connection_only_for_a_waiter() {
    for (wait, connections) in [(Wait::No, 1), (Wait::Within(LIMIT), 2)] {
        let fake = answers_late_once();
        // Its time limit is 2 s: nothing else here is so late.
        let lock = connect(&fake.url()).lock(unique_key("late-once")).ttl(TTL * 20).wait(wait);
        if wait == Wait::No {
            assert_eq!(kind_of(lock.acquire()), NodeErrorKind::TimedOut);
        }
        lock.acquire().unwrap().release().unwrap();
        assert_eq!(fake.accepted(), connections, "{wait:?}");
    }
}

/// A server that accepts and never greets: where ops wait for the greeting, none of them is ever
/// sent, so none of them times out on the wire.
///
/// Reproduces: only ops that had been sent counted as time-outs. A client with a password, or with
/// a connection to cut off, waited for such a greeting forever.
#[test]
fn a_connection_without_a_greeting_is_closed() {
    let fake = FakeServer::tcp(|connection| {
        move |command: Vec<Vec<u8>>| match connection {
            0 => FakeAnswer::Send(Vec::new()),
            _ => fake::obey(&command),
        }
    });
    let url = fake.url().replace("redis://", "redis://:password@");
    let guard = waiting(&connect(&url)).acquire().expect("the second connection is greeted");
    assert_eq!(fake.accepted(), 2);
    guard.release().unwrap();
}

/// Each connection ends behind its first answer. What is asked meanwhile goes over the next one,
/// or is repeated there when it is unknown whether it arrived.
#[test]
fn a_request_during_a_blip_is_sent_over_the_next_connection() {
    let fake = FakeServer::tcp(|_| {
        move |command: Vec<Vec<u8>>| match (ScriptRequest::read(&command), fake::obey(&command)) {
            (Some(_), FakeAnswer::Send(reply)) => FakeAnswer::SendAndClose(reply),
            (_, answer) => answer,
        }
    });
    let client = connect(&fake.url());
    for _ in 0..20 {
        let guard = waiting(&client).acquire().expect("over one of the connections");
        let token = guard.token().clone();
        match guard.release() {
            Ok(()) => {}
            Err(ReleaseError::Unconfirmed(e))
                if e.first().kind() == NodeErrorKind::Disconnected => {}
            other => panic!("a blip is no loss: {other:?}"),
        }
        eventually(LIMIT, "it is released", || {
            fake::asked(&fake.commands()).iter().any(|asked| asked.is("release", token.as_str()))
        });
    }
    assert!(fake.accepted() >= 40);
}

/// Releases that are dropped while the server is out of reach get there in the end.
#[test]
fn releases_wait_for_the_server_to_come_back() {
    let proxy = Proxy::to(shared());
    let client = connect(&proxy.url());
    let guards: Vec<_> = (0..50).map(|_| waiting(&client).acquire().unwrap()).collect();
    let keys: Vec<_> = guards.iter().map(|guard| guard.key().as_bytes().to_vec()).collect();
    proxy.refuse();
    proxy.cut();
    drop(guards);
    proxy.heal();
    let mut raw = shared().raw();
    for key in keys {
        eventually(LIMIT, "released", || raw.cmd(&[b"EXISTS", &key[..]]).int() == 0);
    }
}

/// The pauses between connections grow although each was greeted; and the waiter is served when it
/// is over.
#[test]
fn a_parked_waiter_backs_off_when_its_connection_is_killed_repeatedly() {
    let server = private().start();
    let (holder, client) = (connect(&server.url()), connect(&server.url()));
    let key = unique_key("killed");
    let held = holder.lock(&key).ttl(TTL * 100).acquire().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| client.lock(&key).wait(Wait::Within(LIMIT)).acquire());
        let connections = || {
            let info = server.cmd(&["INFO", "stats"]);
            let field = "total_connections_received:";
            let made = info.text().unwrap().lines().find_map(|line| line.strip_prefix(field));
            made.unwrap().parse::<u32>().unwrap()
        };
        let before = connections();
        let mut killer = server.raw();
        let began = Instant::now();
        let mut killed = 0;
        while began.elapsed() < ms(2_500) {
            for kind in ["normal", "pubsub"] {
                let kill = ["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"];
                killed += killer.cmd(&kill).int();
            }
            thread::sleep(ms(1));
        }
        let made = connections() - before;
        assert!(killed > 2, "its connections were killed");
        // Five pauses below 250 ms, and one of 125 ms at least each after that.
        assert!(made <= 30, "{made} connections in 2.5 s");
        held.release().unwrap();
        waiter.join().unwrap().unwrap().release().unwrap();
    });
}
