//! The errors with which servers refuse, one by one.

use std::cell::RefCell;

use tenure::NodeErrorKind;
use tenure_testkit::{FakeAnswer, FakeServer, Raw, Server, eventually, unique_key};

use super::{
    LIMIT, connect, hold, is_free, kind_of,
    matrix::{PASSWORD, Trouble},
    ms, node_error, with_each_kind,
};
use crate::fake;

fn ok(raw: &mut Raw, command: &[&str]) {
    let reply = raw.cmd(command);
    assert!(reply.error().is_none(), "{command:?}: {reply:?}");
}

/// For each kind of server, as their words differ.
fn on_each_server(
    args: &[&str],
    kind: NodeErrorKind,
    meets_all: bool,
    begin: &(dyn Fn(&mut Raw) + Sync),
    end: &(dyn Fn(&mut Raw) + Sync),
) {
    with_each_kind(|server_kind| {
        let server = Server::builder(server_kind).tcp().args(args.iter().copied()).start();
        let trouble = Trouble { server: &server, url: server.url(), kind, meets_all, begin, end };
        trouble.is_told_as_what_it_is();
    });
}

#[test]
fn a_server_out_of_memory_is_reported() {
    let begin = |raw: &mut Raw| ok(raw, &["CONFIG", "SET", "maxmemory", "1"]);
    let end = |raw: &mut Raw| ok(raw, &["CONFIG", "SET", "maxmemory", "0"]);
    on_each_server(&[], NodeErrorKind::OutOfMemory, false, &begin, &end);
}

#[test]
fn too_few_replicas_are_reported() {
    let begin = |raw: &mut Raw| ok(raw, &["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let end = |raw: &mut Raw| ok(raw, &["CONFIG", "SET", "min-replicas-to-write", "0"]);
    on_each_server(&[], NodeErrorKind::NoReplicas, true, &begin, &end);
}

#[test]
fn a_failed_snapshot_is_reported() {
    let begin = |raw: &mut Raw| {
        ok(raw, &["CONFIG", "SET", "save", "3600 1000000"]);
        ok(raw, &["CONFIG", "SET", "dir", "/proc"]);
        // Fails at once or in its child.
        raw.cmd(&["BGSAVE"]);
        eventually(LIMIT, "the snapshot failed", || {
            let info = raw.cmd(&["INFO", "persistence"]);
            info.text().is_some_and(|text| text.contains("rdb_last_bgsave_status:err"))
        });
    };
    let end = |raw: &mut Raw| ok(raw, &["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
    let args = ["--enable-protected-configs", "yes"];
    on_each_server(&args, NodeErrorKind::CannotSave, true, &begin, &end);
}

#[test]
fn an_endless_script_is_reported() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().args(["--lua-time-limit", "10"]).start();
        // On a connection of its own, which waits for it.
        let runner = RefCell::new(server.raw());
        let begin = |raw: &mut Raw| {
            runner.borrow_mut().send(&["EVAL", "while true do end", "0"]);
            eventually(LIMIT, "it is busy", || {
                raw.cmd(&["GET", "x"]).error().is_some_and(|words| words.starts_with("BUSY"))
            });
        };
        let end = |raw: &mut Raw| ok(raw, &["SCRIPT", "KILL"]);
        let (url, kind) = (server.url(), NodeErrorKind::Busy);
        Trouble { server: &server, url, kind, meets_all: true, begin: &begin, end: &end }
            .is_told_as_what_it_is();
    });
}

#[test]
fn a_user_without_eval_is_reported() {
    let begin = |raw: &mut Raw| ok(raw, &["ACL", "SETUSER", "default", "-eval", "-evalsha"]);
    let end = |raw: &mut Raw| ok(raw, &["ACL", "SETUSER", "default", "+@all"]);
    on_each_server(&[], NodeErrorKind::NoPermission, true, &begin, &end);
}

/// Said inside the script, in words of their own on each server.
#[test]
fn a_user_without_the_commands_in_the_scripts_is_reported() {
    let begin = |raw: &mut Raw| ok(raw, &["ACL", "SETUSER", "default", "-getrange"]);
    let end = |raw: &mut Raw| ok(raw, &["ACL", "SETUSER", "default", "+@all"]);
    on_each_server(&[], NodeErrorKind::NoPermission, true, &begin, &end);
}

/// Clients that are connected stay so, so their connections are ended.
#[test]
fn a_password_set_meanwhile_is_reported() {
    let begin = |raw: &mut Raw| {
        ok(raw, &["CONFIG", "SET", "requirepass", "another"]);
        ok(raw, &["CLIENT", "KILL", "SKIPME", "yes"]);
    };
    let end = |raw: &mut Raw| ok(raw, &["CONFIG", "SET", "requirepass", ""]);
    on_each_server(&[], NodeErrorKind::PasswordMissing, true, &begin, &end);
}

#[test]
fn a_password_changed_meanwhile_is_reported() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().password(PASSWORD).start();
        let url = server.url().replace("redis://", &format!("redis://:{PASSWORD}@"));
        let begin = |raw: &mut Raw| {
            ok(raw, &["CONFIG", "SET", "requirepass", "another"]);
            ok(raw, &["CLIENT", "KILL", "SKIPME", "yes"]);
        };
        let end = |raw: &mut Raw| ok(raw, &["CONFIG", "SET", "requirepass", PASSWORD]);
        let kind = NodeErrorKind::Denied;
        Trouble { server: &server, url, kind, meets_all: true, begin: &begin, end: &end }
            .is_told_as_what_it_is();
    });
}

#[test]
fn too_many_clients_are_reported() {
    let begin = |raw: &mut Raw| {
        ok(raw, &["CONFIG", "SET", "maxclients", "1"]);
        ok(raw, &["CLIENT", "KILL", "SKIPME", "yes"]);
    };
    let end = |raw: &mut Raw| ok(raw, &["CONFIG", "SET", "maxclients", "100"]);
    on_each_server(&[], NodeErrorKind::TooManyClients, true, &begin, &end);
}

/// What a proxy or a managed server says that does not let scripts through.
#[test]
fn a_server_without_scripts_is_reported() {
    let words = "-ERR unknown command 'EVAL', with args beginning with: 'local K' \r\n";
    let server = FakeServer::tcp(move |_| {
        move |command: Vec<Vec<u8>>| fake::greet(&command, "run").unwrap_or_else(|| words.into())
    });
    let client = connect(&server.url());
    for _ in 0..2 {
        let error = client.lock(unique_key("no-scripts")).acquire_within(LIMIT).unwrap_err();
        assert_eq!(node_error(&error).kind(), NodeErrorKind::UnknownCommand);
        assert!(!node_error(&error).is_retryable());
    }
    let greeting = "-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n";
    let old = FakeServer::tcp(move |_| move |_: Vec<Vec<u8>>| FakeAnswer::from(greeting));
    let client = connect(&old.url());
    let kind = kind_of(client.lock(unique_key("old")).acquire());
    assert_eq!(kind, NodeErrorKind::UnknownCommand);
}

/// The server reads its data again, as slowly as the test wants, and says so until it has.
#[test]
fn a_loading_server_is_reported() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        let runner = RefCell::new(server.raw());
        let begin = |raw: &mut Raw| {
            ok(raw, &["CONFIG", "SET", "loading-process-events-interval-bytes", "1024"]);
            ok(raw, &["CONFIG", "SET", "key-load-delay", "1000"]);
            ok(raw, &["DEBUG", "POPULATE", "20000", "k", "64"]);
            runner.borrow_mut().send(&["DEBUG", "RELOAD"]);
            eventually(LIMIT, "it is loading", || {
                raw.cmd(&["GET", "x"]).error().is_some_and(|words| words.starts_with("LOADING"))
            });
        };
        let end = |raw: &mut Raw| {
            ok(raw, &["CONFIG", "SET", "key-load-delay", "0"]);
            assert!(runner.borrow_mut().receive().is_ok());
        };
        let (url, kind) = (server.url(), NodeErrorKind::Loading);
        Trouble { server: &server, url, kind, meets_all: true, begin: &begin, end: &end }
            .is_told_as_what_it_is();
    });
}

/// A server that is full refuses new locks and harms no old ones.
#[test]
fn holders_keep_their_locks_on_a_server_out_of_memory() {
    let server = super::private().start();
    let ttl = ms(1_500);
    let client = connect(&server.url());
    let key = unique_key("full");
    let guard = client.lock(&key).ttl(ttl).acquire().unwrap();
    server.cmd(&["CONFIG", "SET", "maxmemory", "1"]);
    hold(5 * ttl);
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    assert!(!is_free(&server, &key));
    let other = unique_key("refused");
    let error = client.lock(&other).ttl(ttl).try_acquire().unwrap_err();
    assert_eq!(node_error(&error).kind(), NodeErrorKind::OutOfMemory);
    assert!(node_error(&error).is_retryable());
    assert!(is_free(&server, &other), "a refused lock was left");
    let fences = server.cmd(&["EXISTS", &format!("{{{other}}}:tenure.fence")]);
    assert_eq!(fences.int(), 0, "a refused lock's number was left");
    guard.release().expect("a release needs no memory");
    assert!(is_free(&server, &key));
}
