//! The bytes of a connection: out of step, in pieces, unasked for, and lost.

use std::{
    sync::{Arc, Mutex},
    thread,
};

use tenure::{NodeErrorKind, ReleaseError, Wait};
use tenure_testkit::{FakeAnswer, FakeServer, Proxy, eventually, unique_key};

use super::{
    LIMIT, TTL, connect, eventually_free, is_free, kind_of, ms, node_error, shared, value,
};
use crate::fake::{self, ScriptRequest};

/// One reply belongs to another request: nothing of that connection can be believed any more.
#[test]
fn a_mismatched_reply_ends_the_connection_and_leaves_all_outcomes_unknown() {
    let waiting: Arc<Mutex<Option<ScriptRequest>>> = Arc::default();
    let fake = FakeServer::tcp(move |connection| {
        let waiting = Arc::clone(&waiting);
        move |command: Vec<Vec<u8>>| {
            let Some(asked) = ScriptRequest::read(&command).filter(|_| connection == 0) else {
                return fake::obey(&command);
            };
            match waiting.lock().unwrap().replace(asked.clone()) {
                None => FakeAnswer::Send(Vec::new()),
                // The first request gets the answer of the second.
                Some(_first) => asked.obeyed(),
            }
        }
    });
    let client = connect(&fake.url());
    let kinds = thread::scope(|scope| {
        let tries: Vec<_> = (0..2)
            .map(|_| {
                let lock = client.lock(unique_key("out-of-step")).ttl(TTL * 100);
                scope.spawn(move || kind_of(lock.try_acquire()))
            })
            .collect();
        tries.into_iter().map(|attempt| attempt.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(kinds, [NodeErrorKind::Protocol; 2]);
    // Both may have been granted, so both are undone, over another connection.
    eventually(LIMIT, "both are undone", || {
        let asked = fake::asked(&fake.commands());
        let acquired: Vec<_> = asked.iter().filter(|a| a.script == "acquire").collect();
        acquired.len() == 2
            && acquired.iter().all(|a| asked.iter().any(|b| b.is("release", &a.token)))
    });
    assert!(fake.accepted() >= 2, "the connection out of step goes on");
}

/// A release is never taken for confirmed by another's answer.
#[test]
fn a_release_with_a_mismatched_reply_is_unconfirmed() {
    let fake = FakeServer::tcp(|connection| {
        move |command: Vec<Vec<u8>>| match ScriptRequest::read(&command) {
            Some(mut asked) if asked.script == "release" && connection == 0 => {
                asked.number = "4711".into();
                asked.obeyed()
            }
            _ => fake::obey(&command),
        }
    });
    let client = connect(&fake.url());
    let guard = client.lock(unique_key("out-of-step")).acquire().unwrap();
    match guard.release() {
        Err(ReleaseError::Unconfirmed(errors)) => {
            assert_eq!(errors.first().kind(), NodeErrorKind::Protocol);
        }
        other => panic!("confirmed by another's answer: {other:?}"),
    }
    // So it goes out again, over a connection that is in step.
    let asked = || fake::asked(&fake.commands());
    eventually(LIMIT, "released again", || {
        asked().iter().filter(|asked| asked.script == "release").count() == 2
    });
}

/// Messages that nobody asked for belong to no request, wherever they come.
#[test]
fn an_unsolicited_message_is_no_reply() {
    let pushes = ">3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n\
                  >2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n";
    let fake = FakeServer::tcp(move |_| {
        move |command: Vec<Vec<u8>>| {
            let FakeAnswer::Send(reply) = fake::obey(&command) else { unreachable!() };
            FakeAnswer::Send([pushes.as_bytes(), &reply, pushes.as_bytes()].concat())
        }
    });
    let client = connect(&fake.url());
    for _ in 0..20 {
        let guard = client.lock(unique_key("pushed")).acquire().unwrap();
        fake.push(pushes.as_bytes());
        guard.release().unwrap();
    }
    assert_eq!(fake.accepted(), 1, "a message ended the connection");
}

/// What is no server of ours: an error that says so.
#[test]
fn a_server_of_another_protocol_is_reported() {
    for (bytes, kind) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", NodeErrorKind::Protocol),
        ("+OK\r\n", NodeErrorKind::Protocol),
        ("-NOPROTO unsupported protocol version\r\n", NodeErrorKind::Protocol),
    ] {
        let fake = FakeServer::tcp(move |_| move |_: Vec<Vec<u8>>| FakeAnswer::from(bytes));
        let error = connect(&fake.url()).lock(unique_key("alien")).acquire().unwrap_err();
        assert_eq!(node_error(&error).kind(), kind, "{bytes:?}");
        let port = fake.url().rsplit_once(':').unwrap().1.to_owned();
        assert!(node_error(&error).to_string().contains(&port));
    }
}

/// A reply is read though the server closes the connection right after it.
///
/// Reproduces: a reply was thrown away when the end of the connection was read along with it.
/// "Too many clients" was reported as a broken connection, and a grant as unknown.
#[test]
fn a_reply_right_before_the_end_of_the_connection_is_read() {
    for round in 0..20 {
        let fake = FakeServer::tcp(|_| {
            |command: Vec<Vec<u8>>| match fake::obey(&command) {
                FakeAnswer::Send(reply) if ScriptRequest::read(&command).is_some() => {
                    FakeAnswer::SendAndClose(reply)
                }
                other => other,
            }
        });
        let guard = connect(&fake.url()).lock(unique_key("last-words")).try_acquire();
        assert!(guard.unwrap().is_some(), "round {round}");
    }
}

/// TCP cuts the stream where it likes.
#[test]
fn replies_in_single_bytes_are_assembled() {
    let proxy = Proxy::to(shared());
    proxy.split_bytes();
    let client = connect(&proxy.url());
    let guards: Vec<_> =
        (0..10).map(|_| client.lock(unique_key("split")).acquire().unwrap()).collect();
    for guard in guards {
        guard.extend(TTL * 100).unwrap();
        assert!(client.lock(guard.key().as_bytes()).inspect().unwrap().held.is_some());
        guard.release().unwrap();
    }
}

/// The grant was given and its reply lost: the lock is ours or it is nobody's, and a late command
/// takes nothing.
#[test]
fn a_grant_whose_reply_is_lost_is_owned_or_removed() {
    let lose_and_go_on = |proxy: &Proxy| proxy.drop_next_replies(1);
    let lose_and_cut = |proxy: &Proxy| proxy.drop_next_replies_then_cut(1);
    for lose in [&lose_and_go_on as &dyn Fn(&Proxy), &lose_and_cut] {
        let proxy = Proxy::to(shared());
        let client = connect(&proxy.url());
        let key = unique_key("reply-lost");
        let lock = client.lock(&key).ttl(TTL * 100);
        let greeted = || eventually(LIMIT, "a connection", || lock.inspect().is_ok());
        greeted();
        lose(&proxy);
        let error = lock.clone().ttl(ms(200)).try_acquire().expect_err("its reply is lost");
        let kind = node_error(&error).kind();
        assert!(matches!(kind, NodeErrorKind::TimedOut | NodeErrorKind::Disconnected), "{kind:?}");
        eventually_free(shared(), &key);

        greeted();
        lose(&proxy);
        let lock = lock.clone().wait(Wait::Within(LIMIT));
        let guard = lock.acquire().expect("the late key of the first attempt is removed");
        assert_eq!(value(shared(), &key).as_deref(), Some(guard.token().as_bytes()));
        guard.release().unwrap();
        assert!(is_free(shared(), &key));
    }
}
