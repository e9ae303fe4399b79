//! Servers that let their users have no channels: waiters poll, and keep their deadlines.

use std::{thread, time::Instant};

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, eventually};

use super::line::{channels, nothing_is_left};
use crate::{
    LIMIT, ms, ran_out, secs,
    servers::{exists, scripts},
};

/// Each way of not having them, on a server of its own.
fn each(test: impl Fn(&Server) + Sync) {
    let refusals = ["resetchannels", "-subscribe", "-pubsub", "-publish"];
    let kinds = ServerKind::ALL.iter().cycle();
    thread::scope(|scope| {
        let test = &test;
        let ran: Vec<_> = refusals
            .iter()
            .zip(kinds)
            .map(|(refusal, kind)| {
                scope.spawn(move || {
                    let server = Server::start(*kind);
                    let user = ["ACL", "SETUSER", "u", "on", "nopass", "~*", "&*", "+@all"];
                    assert!(server.cmd(&user).is_ok());
                    assert!(server.cmd(&["ACL", "SETUSER", "u", refusal]).is_ok());
                    test(&server);
                })
            })
            .collect();
        for (refusal, ran) in refusals.iter().zip(ran) {
            assert!(ran.join().is_ok(), "{refusal}");
        }
    });
}

fn connect(server: &Server) -> Client {
    let url = server.url().replace("redis+unix://", "redis+unix://u:x@");
    Client::connect(&url).unwrap()
}

#[test]
fn without_channels_waiters_poll_and_are_served() {
    each(|server| {
        let lock = connect(server).lock("k").ttl(secs(600));
        for _ in 0..3 {
            let guard = lock.acquire().unwrap();
            let waiters: Vec<_> = (0..3)
                .map(|_| {
                    let lock = connect(server).lock("k").ttl(secs(600));
                    thread::spawn(move || lock.acquire_within(LIMIT * 3).unwrap().release())
                })
                .collect();
            let before = scripts(server);
            eventually(LIMIT, "they poll", || scripts(server) > before + 9);
            guard.release().unwrap();
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap().unwrap());
        }
        eventually(LIMIT, "nothing is left", || nothing_is_left(server, "k"));
    });
}

/// A waiter that polls never sleeps past the end of its wait, and leaves nothing behind it.
#[test]
fn without_channels_waits_end_at_their_deadlines() {
    each(|server| {
        let holder = connect(server);
        let guard = holder.lock("k").ttl(secs(600)).acquire().unwrap();
        let client = connect(server);
        for wait in [ms(10), ms(130), ms(700)] {
            let began = Instant::now();
            let missed = client.lock("k").acquire_within(wait);
            assert!(ran_out(&missed), "{missed:?}");
            assert!(began.elapsed() >= wait, "{:?} of {wait:?}", began.elapsed());
        }
        eventually(LIMIT, "nobody is left in the queue", || channels(server, "k").is_empty());
        guard.release().unwrap();
        client.close().unwrap();
        assert!(!exists(server, "k"), "taken after the end");
    });
}
