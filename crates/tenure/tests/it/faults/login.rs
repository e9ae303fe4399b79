//! No op gets through before its user and its database are confirmed: an op in the wrong database,
//! or as the wrong user, is a lock that nobody else sees.

use tenure::{NodeErrorKind, Wait};
use tenure_testkit::{FakeServer, Server, unique_key};

use super::{LIMIT, TTL, connect, kind_of, node_error, private, with_each_kind};
use crate::fake;

/// Nothing in database 0, and no script at all.
#[test]
fn nothing_is_done_where_the_database_does_not_exist() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        let mut monitor = server.monitor();
        let client = connect(&format!("{}/99", server.url()));
        for _ in 0..5 {
            let lock = client.lock(unique_key("no-database")).ttl(TTL);
            let error = lock.acquire_within(LIMIT).unwrap_err();
            assert_eq!(node_error(&error).kind(), NodeErrorKind::Refused, "{kind}");
            assert!(error_and_cause(&error).contains("DB index"), "{}", error_and_cause(&error));
            assert!(lock.force_release().is_err());
        }
        let sent = monitor.so_far();
        assert!(!sent.iter().any(|line| line.contains("EVAL")), "{kind}: {sent:?}");
        assert_eq!(server.cmd(&["DBSIZE"]).int(), 0, "{kind}");
    });
}

fn error_and_cause(error: &tenure::AcquireError) -> String {
    let node = node_error(error);
    let cause = std::error::Error::source(node).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {node}: {cause}")
}

/// The default user is open: a refused AUTH leaves a connection that could do everything.
#[test]
fn nothing_is_done_as_the_default_user_when_the_password_is_wrong() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        server.cmd(&["ACL", "SETUSER", "app", "on", ">right", "~*", "&*", "+@all"]);
        let mut monitor = server.monitor();
        let login = |password: &str| server.url().replace("//", &format!("//app:{password}@"));
        let client = connect(&login("wrong"));
        for _ in 0..5 {
            let lock = client.lock(unique_key("wrong-password")).ttl(TTL);
            assert_eq!(kind_of(lock.acquire_within(LIMIT)), NodeErrorKind::Denied, "{kind}");
        }
        let sent = monitor.so_far();
        assert!(!sent.iter().any(|line| line.contains("EVAL")), "{kind}: {sent:?}");
        assert_eq!(server.cmd(&["DBSIZE"]).int(), 0, "{kind}");
        // The control: with the right one it is done.
        let guard = connect(&login("right")).lock("right").ttl(TTL).acquire().unwrap();
        guard.release().unwrap();
    });
}

/// In the database that was asked for, over every connection.
#[test]
fn ops_go_to_their_database_over_the_second_connection_too() {
    let server = private().start();
    let client = connect(&format!("{}/3", server.url()));
    let key = unique_key("database-3");
    for round in 0..10 {
        let lock = client.lock(&key).ttl(TTL).wait(Wait::Within(LIMIT));
        let guard = lock.acquire().unwrap();
        let mut raw = server.raw();
        assert!(raw.cmd(&["GET", &key]).is_nil(), "round {round}: in database 0");
        assert!(raw.cmd(&["SELECT", "3"]).is_ok());
        assert_eq!(raw.cmd(&["GET", &key]).bytes(), Some(guard.token().as_bytes()));
        server.cmd(&["CLIENT", "KILL", "SKIPME", "yes"]);
        // Its connection is gone; the release still finds the key in its database.
        drop(guard);
    }
    assert_eq!(server.cmd(&["DBSIZE"]).int(), 0);
}

/// A script that is sent before the answers are here would show in the order of the commands.
#[test]
fn ops_wait_for_the_answers_that_they_depend_on() {
    for address in ["/3", "?db=3"] {
        let fake = FakeServer::tcp(|_| {
            move |command: Vec<Vec<u8>>| {
                if command[0] == b"SELECT" {
                    return "-ERR DB index is out of range\r\n".into();
                }
                fake::obey(&command)
            }
        });
        let client = connect(&format!("{}{address}", fake.url()));
        let kind = kind_of(client.lock(unique_key("select")).acquire());
        assert_eq!(kind, NodeErrorKind::Refused);
        assert!(fake::asked(&fake.commands()).is_empty(), "{:?}", fake.commands());
    }
}
