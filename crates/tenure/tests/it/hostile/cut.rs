//! A connection that ends within a reply, after each byte of it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tenure::{AcquireError, ReleaseError, blocking::Client};
use tenure_testkit::{FakeAnswer, FakeServer, eventually, unique_key};

use crate::{
    LIMIT,
    fake::{ScriptRequest, greet},
    secs,
};

/// A server that grants and releases; the replies to the script end after so many bytes, and with
/// them the connection.
fn cut(script: &'static str, after: &Arc<AtomicUsize>) -> FakeServer {
    let after = Arc::clone(after);
    FakeServer::unix(move |_| {
        let after = Arc::clone(&after);
        move |command| {
            greet(&command, "run").unwrap_or_else(|| {
                let asked = ScriptRequest::read(&command).expect("a script");
                let FakeAnswer::Send(reply) = asked.obeyed() else { unreachable!("it obeys") };
                let bytes = after.load(Ordering::SeqCst);
                match asked.script == script && bytes < reply.len() {
                    true => FakeAnswer::SendAndClose(reply[..bytes].to_vec()),
                    false => FakeAnswer::Send(reply),
                }
            })
        }
    })
}

/// Longer than any of these replies.
const MAX: usize = 120;

#[test]
fn a_grant_cut_at_any_byte_gives_no_guard() {
    let after = Arc::new(AtomicUsize::new(0));
    let server = cut("acquire", &after);
    let mut granted = 0;
    for bytes in 0..MAX {
        after.store(bytes, Ordering::SeqCst);
        let client = Client::connect(&server.url()).unwrap();
        match client.lock(unique_key("cut")).ttl(secs(10)).try_acquire() {
            Ok(Some(guard)) => {
                granted += 1;
                guard.release().unwrap();
            }
            Ok(None) => panic!("nobody holds it"),
            Err(AcquireError::NoQuorum(_)) => assert_eq!(granted, 0, "{bytes} bytes are fewer"),
            Err(error) => panic!("nobody holds it: {error}"),
        }
    }
    assert!(granted > 0 && granted < MAX, "{granted} were whole");
}

#[test]
fn a_release_with_a_cut_reply_is_unconfirmed_and_repeated() {
    let after = Arc::new(AtomicUsize::new(usize::MAX));
    let server = cut("release", &after);
    let mut released = 0;
    for bytes in 0..MAX {
        after.store(usize::MAX, Ordering::SeqCst);
        let client = Client::connect(&server.url()).unwrap();
        let guard = client.lock(unique_key("cut")).ttl(secs(10)).acquire().unwrap();
        let token = guard.token().as_str().to_owned();
        after.store(bytes, Ordering::SeqCst);
        match guard.release() {
            Ok(()) => released += 1,
            Err(ReleaseError::Unconfirmed(_)) => assert_eq!(released, 0, "{bytes} are fewer"),
            Err(error) => panic!("it was held: {error}"),
        }
        after.store(usize::MAX, Ordering::SeqCst);
        eventually(LIMIT, "it is released again", || {
            let asked = crate::fake::asked(&server.commands());
            asked.iter().any(|asked| asked.is("release", &token))
        });
    }
    assert!(released > 0 && released < MAX, "{released} were whole");
}
