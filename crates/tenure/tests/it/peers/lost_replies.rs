//! Requests that the server executed, and whose reply was lost.

use tenure::{AcquireError, NodeErrorKind, ReleaseError, blocking::Client};
use tenure_testkit::{FakeServer, Proxy, Server, eventually, unique_key};

use super::answer;
use crate::{
    LIMIT,
    fake::{self, ScriptRequest},
    ms,
    quorum::all_catch_up,
    secs,
    servers::{self, any, behind, exists, get},
};

/// Two handles with one token: the clean-up of the one that lost deleted the key of the other.
///
/// Reproduces: A holds K. B asks for K, the answer is lost, B undoes its attempt.
#[test]
fn the_clean_up_of_a_failed_attempt_spares_the_holder() {
    the_clean_up_spares_the_holder(&[any()]);
}

/// A client that gets none of their replies takes nothing from the holder of the lock on all of
/// these.
pub(super) fn the_clean_up_spares_the_holder(nodes: &[&Server]) {
    let key = unique_key("lost-replies");
    let holder = Client::connect(&servers::quorum(nodes.iter().copied())).unwrap();
    let guard = holder.lock(&key).ttl(secs(600)).acquire_within(LIMIT).unwrap();
    let value = guard.token().as_bytes();
    let have_it = || nodes.iter().all(|node| get(node, &key).bytes() == Some(value));
    eventually(LIMIT, "all have it", have_it);
    for resumes in [false, true] {
        let proxies: Vec<_> = nodes.iter().map(|node| Proxy::to(node)).collect();
        let client = warm(&proxies);
        let lock = client.lock(&key).ttl(secs(1));
        proxies.iter().for_each(|proxy| proxy.drop_next_replies_then_cut(1));
        let failed = if resumes {
            // It resumes with the holder's own token, which is not its own to undo.
            lock.resume(guard.token().clone())
        } else {
            lock.try_acquire()
        };
        assert!(matches!(failed, Err(AcquireError::NoQuorum(_))), "{failed:?}");
        // Whatever the client sends of itself, it has sent by then.
        client.close().unwrap();
        assert!(have_it());
    }
    guard.release().unwrap();
}

/// A client of theirs behind these, whose connections are there and quiet.
pub(super) fn warm(proxies: &[Proxy]) -> Client {
    let client = Client::connect(&behind(proxies)).unwrap();
    let lock = client.lock(unique_key("warm"));
    lock.acquire_within(LIMIT).unwrap().release().unwrap();
    all_catch_up(&lock);
    client
}

/// Reproduces: the reply to a granted acquisition is swallowed, the key is set, nobody knows.
/// The next try on the same name must not find its own key in the way for the whole TTL.
#[test]
fn an_acquisition_whose_reply_is_lost_is_undone() {
    let key = unique_key("lost-replies");
    let proxy = Proxy::to(any());
    let client = Client::connect(&proxy.url()).unwrap();
    client.lock(unique_key("warm")).acquire().unwrap().release().unwrap();
    let lock = client.lock(&key).ttl(secs(600));
    proxy.drop_next_replies(1);
    let failed = lock.try_acquire().unwrap_err();
    let AcquireError::NoQuorum(none) = &failed else { panic!("{failed:?}") };
    assert_eq!(none.failed[0].kind(), NodeErrorKind::TimedOut);
    assert_eq!((none.granted, none.needed), (0, 1));
    eventually(LIMIT, "the attempt is undone", || !exists(any(), &key));
    lock.acquire_within(secs(20)).unwrap().release().unwrap();
}

/// Reproduces: the connection dies after the server has carried out the release.
/// The caller learns that it is not confirmed, and the library goes on releasing by itself.
#[test]
fn a_release_whose_connection_dies_is_repeated() {
    let proxy = Proxy::to(any());
    let client = Client::connect(&proxy.url()).unwrap();
    for carried_out in [true, false] {
        let key = unique_key("lost-replies");
        let guard = client.lock(&key).ttl(secs(600)).acquire().unwrap();
        if carried_out {
            proxy.drop_next_replies_then_cut(1);
        } else {
            // Requests are on their way for long, and the way is cut.
            proxy.delay_requests(secs(60));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(ms(100));
                    proxy.cut();
                    proxy.heal();
                });
            });
        }
        drop(guard.release());
        eventually(LIMIT, "it is released", || !exists(any(), &key));
    }
}

/// Reproduces: the acquire's reply is lost with the connection; the built-in retry finds its own
/// key and takes it for another's, for the whole validity, on a lock that is free.
#[test]
fn a_caller_does_not_block_itself_after_a_lost_reply() {
    let key = unique_key("lost-replies");
    let proxy = Proxy::to(any());
    let client = Client::connect(&proxy.url()).unwrap();
    client.lock(unique_key("warm")).acquire().unwrap().release().unwrap();
    proxy.drop_next_replies_then_cut(1);
    // The TTL is far longer than the wait: only an undoing makes room.
    let lock = client.lock(&key).ttl(secs(600));
    let guard = lock.acquire_within(secs(20)).unwrap();
    assert_eq!(get(any(), &key).text(), Some(guard.token().as_str()));
    guard.release().unwrap();
    assert!(!exists(any(), &key));
}

/// Reproduces: an acquisition timed out but happened; the retry counts a second hold; one release
/// leaves the lock held.
#[test]
fn after_a_lost_reply_one_release_frees_the_lock() {
    let key = unique_key("lost-replies");
    let proxy = Proxy::to(any());
    let client = Client::connect(&proxy.url()).unwrap();
    client.lock(unique_key("warm")).acquire().unwrap().release().unwrap();
    let lock = client.lock(&key).ttl(secs(600));
    proxy.drop_next_replies(1);
    assert!(lock.try_acquire().is_err());
    let guard = lock.acquire_within(secs(20)).unwrap();
    guard.release().unwrap();
    assert!(!exists(any(), &key), "still held after the release");
    // And nothing that was under way undoes the next holder.
    let guard = lock.acquire().unwrap();
    let value = get(any(), &key);
    client.close().unwrap();
    assert_eq!(get(any(), &key), value);
    assert!(matches!(guard.release(), Err(ReleaseError::EngineStopped { .. })));
    assert_eq!(any().cmd(&["DEL", &key]).int(), 1);
}

/// Reproduces: a reply vanishes within the stream, so the next one is taken for it, the connection
/// ends, and the release that was under way there is never sent again.
#[test]
fn a_release_answered_by_another_reply_is_repeated() {
    let fake = FakeServer::unix(|connection| {
        move |command: Vec<Vec<u8>>| match ScriptRequest::read(&command) {
            Some(mut asked) if asked.script == "release" && connection == 0 => {
                asked.number = "4711".into();
                asked.obeyed()
            }
            _ => answer(&command, "-NOSCRIPT"),
        }
    });
    let client = Client::connect(&fake.url()).unwrap();
    let guard = client.lock("k").ttl(secs(600)).acquire().unwrap();
    let token = guard.token().as_str().to_owned();
    let unsure = guard.release();
    assert!(matches!(unsure, Err(ReleaseError::Unconfirmed(_))), "{unsure:?}");
    eventually(LIMIT, "it is released again, over another connection", || {
        let asked = fake::asked(&fake.commands());
        asked.iter().filter(|asked| asked.is("release", &token)).count() == 2
    });
    client.close().unwrap();
}
