//! Servers that lost the scripts, or report that in other words.

use tenure::{AcquireError, blocking::Client};
use tenure_testkit::{FakeServer, Server, ServerKind, unique_key};

use super::answer;
use crate::secs;

/// Reproduces: the scripts are flushed between any two ops, as by a restart or a failover.
#[test]
fn a_script_flush_between_any_two_requests_goes_unnoticed() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let client = Client::connect(&server.url()).unwrap();
        let lock = client.lock(unique_key("scripts"));
        let flush = || assert!(server.cmd(&["SCRIPT", "FLUSH"]).is_ok());
        for _ in 0..3 {
            let guard = lock.acquire().unwrap();
            flush();
            assert!(lock.try_acquire().unwrap().is_none());
            flush();
            guard.extend(secs(20)).unwrap();
            flush();
            assert!(lock.inspect().unwrap().held.is_some());
            flush();
            let guard = lock.resume(guard.detach()).unwrap().unwrap();
            flush();
            guard.release().unwrap();
            flush();
            drop(lock.steal().unwrap());
            flush();
            lock.force_release().unwrap();
            flush();
        }
        // SCRIPT LOAD is refused by cluster clients and proxies: it must not be needed.
        let loaded = server.cmd(&["INFO", "commandstats"]);
        assert!(!loaded.text().unwrap().contains("script|load"), "{kind}");
    }
}

/// Reproduces: a server says NOSCRIPT in words of its own, and a client that looks for a whole
/// sentence never sends the script.
#[test]
fn only_the_first_word_of_noscript_counts() {
    for words in ["No matching script.", "script not found, Captain", "", "\u{6ca1}\u{6709}"] {
        let refusal = format!("-NOSCRIPT {words}\r\n");
        let fake = FakeServer::unix(move |_| {
            let refusal = refusal.clone();
            move |command: Vec<Vec<u8>>| answer(&command, &refusal)
        });
        let client = Client::connect(&fake.url()).unwrap();
        let lock = client.lock("k");
        for _ in 0..2 {
            let guard = lock.acquire().unwrap();
            assert_eq!(guard.fencing_token().get(), 7);
            guard.release().unwrap();
        }
        let names: Vec<_> = fake.commands().iter().map(|command| command[0].clone()).collect();
        let count = |name: &[u8]| names.iter().filter(|n| *n == name).count();
        // The proof; each script in full, one by name, and in full again: all are forgotten.
        assert_eq!((count(b"EVAL"), count(b"EVALSHA"), count(b"SCRIPT")), (5, 1, 0));
    }
}

/// An error that is not that one is an error, and no reason to send the script.
#[test]
fn another_refusal_does_not_resend_the_script() {
    let fake = FakeServer::unix(|_| {
        |command: Vec<Vec<u8>>| answer(&command, "-ERR NOSCRIPT is not what I mean\r\n")
    });
    let client = Client::connect(&fake.url()).unwrap();
    let lock = client.lock("k");
    lock.acquire().unwrap().release().unwrap();
    let refused = lock.acquire();
    assert!(matches!(refused, Err(AcquireError::NoQuorum(_))), "{refused:?}");
}
