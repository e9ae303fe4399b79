//! Rights that a user lacks, or that are taken away: reported before the work begins, or worked
//! around; and a loss says what the server refused.

use std::{collections::BTreeSet, thread, time::Duration};

use tenure::{LossReason, NodeErrorKind, ReleaseError, blocking};
use tenure_core::script;
use tenure_testkit::{Server, ServerKind, eventually, unique_key};

use super::{LIMIT, connect, hold, is_free, node_error, value, when_lost, with_each_kind};

/// As the user `u` with these rights.
fn connect_as(server: &Server, rights: &[&str]) -> blocking::Client {
    connect_as_user("u", server, rights)
}

fn connect_as_user(name: &str, server: &Server, rights: &[&str]) -> blocking::Client {
    let user = [&["ACL", "SETUSER", name, "reset", "on", "nopass"][..], rights].concat();
    assert!(server.cmd(&user).is_ok(), "{rights:?}: {:?}", server.cmd(&user));
    connect(&server.url().replace("redis://", &format!("redis://{name}:hunter2@")))
}

fn revoke(server: &Server, right: &str) {
    assert!(server.cmd(&["ACL", "SETUSER", "u", right]).is_ok(), "{right}");
}

const ALL: [&str; 3] = ["~*", "&*", "+@all"];

/// What goes over a connection, and what scripts call.
fn commands() -> BTreeSet<String> {
    let outside = "eval evalsha info get client|tracking client|caching client|kill subscribe \
                   unsubscribe select";
    let calls = script::ALL.iter().flat_map(|script| {
        let calls = script.text.split("redis.call('").flat_map(|part| part.split("redis.pcall('"));
        calls.skip(1).filter_map(|part| Some(part.split_once('\'')?.0.to_lowercase()))
    });
    outside.split(' ').map(str::to_owned).chain(calls).collect()
}

/// Each is held for longer, and a busy machine must not take it away.
const TTL: Duration = Duration::from_secs(2);

#[test]
fn a_missing_permission_is_reported_before_the_work_or_worked_around() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        thread::scope(|scope| {
            for command in commands() {
                let server = &server;
                scope.spawn(move || without(kind, server, &command));
            }
        });
    });
}

/// A lease of a user that lacks the right to one command.
fn without(kind: ServerKind, server: &Server, command: &str) {
    let user = command.replace('|', "-");
    let lacks = format!("-{command}");
    let client = connect_as_user(&user, server, &[&ALL[..], &[&lacks]].concat());
    let key = unique_key(command);
    match client.lock(&key).ttl(TTL).acquire_within(LIMIT) {
        Ok(guard) => {
            // It is renewed, and watched.
            hold(TTL * 3 / 2);
            assert_eq!(
                guard.ensure_held().map_err(|loss| loss.reason),
                Ok(()),
                "{kind} without {command}"
            );
            guard.release().unwrap_or_else(|e| panic!("{kind} without {command}: {e}"));
            let again = client.lock(&key).ttl(TTL).acquire_within(LIMIT).unwrap();
            again.release().unwrap();
        }
        Err(error) => {
            let error = node_error(&error);
            let words = std::error::Error::source(error).unwrap().to_string();
            assert_eq!(error.kind(), NodeErrorKind::NoPermission, "{kind}: {words}");
            let words = words.to_lowercase();
            assert!(words.contains(command) || words.contains("script"), "{command}: {words}");
        }
    }
    assert!(is_free(server, &key), "{kind} without {command}: a key is left");
}

/// Named before anything is done, with the lock free and held.
#[test]
fn permissions_of_release_and_renewal_are_checked_at_the_start() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        for command in ["del", "pexpire", "pttl", "type", "zrem", "zpopmin", "zremrangebyscore"] {
            let client = connect_as(&server, &[&ALL[..], &[&format!("-{command}")]].concat());
            let lock = client.lock(unique_key("lacking")).ttl(TTL);
            for error in [lock.try_acquire().unwrap_err(), lock.steal().unwrap_err()] {
                let words = std::error::Error::source(node_error(&error)).unwrap().to_string();
                assert!(words.contains(&format!("'{command}'")), "{kind}: {words}");
            }
            // The same connection, once the right is there.
            revoke(&server, &format!("+{command}"));
            lock.acquire_within(LIMIT).unwrap().release().unwrap();
        }
    });
}

#[test]
fn a_permission_revoked_while_held_is_reported_with_the_loss() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        for commands in [&["-pexpire"][..], &["-getrange"], &["-eval", "-evalsha"]] {
            let client = connect_as(&server, &ALL);
            let guard = client.lock(unique_key("revoked")).ttl(TTL).acquire().unwrap();
            assert!(guard.renewal_failure().is_none());
            commands.iter().for_each(|command| revoke(&server, command));
            assert_eq!(when_lost(&guard), LossReason::Expired, "{kind}: {commands:?}");
            let failure = guard.renewal_failure().expect("renewals failed");
            assert!(failure.is_refusal(), "{kind}: {failure}");
            assert_eq!(failure.errors.first().kind(), NodeErrorKind::NoPermission, "{failure}");
            assert!(failure.failing_for >= TTL / 4, "{kind}: {failure}");
            let words = failure.to_string();
            assert!(words.contains("script") || words.contains(&commands[0][1..]), "{words}");
        }
        // Either way of sending scripts is enough.
        for command in ["-eval", "-evalsha"] {
            let client = connect_as(&server, &ALL);
            let guard = client.lock(unique_key("one way")).ttl(TTL).acquire().unwrap();
            hold(TTL);
            revoke(&server, command);
            hold(TTL * 3 / 2);
            assert_eq!(
                guard.ensure_held().map_err(|loss| loss.reason),
                Ok(()),
                "{kind}: {command}"
            );
            guard.release().unwrap();
        }
    });
}

#[test]
fn a_refused_release_is_unconfirmed_and_the_key_ends_with_its_ttl() {
    with_each_kind(|kind| {
        let server = Server::builder(kind).tcp().start();
        let client = connect_as(&server, &ALL);
        let key = unique_key("undeletable");
        let guard = client.lock(&key).ttl(TTL).acquire().unwrap();
        revoke(&server, "-del");
        let Err(ReleaseError::Unconfirmed(errors)) = guard.release() else { panic!("{kind}") };
        assert_eq!(errors.first().kind(), NodeErrorKind::NoPermission, "{kind}");
        eventually(LIMIT, "its TTL ends", || value(&server, &key).is_none());
    });
}

/// The words of a line that begins so in a document.
fn acl(document: &str) -> Vec<&str> {
    let begins = document.find("ACL SETUSER app").expect("the rights, in a block of code");
    let (block, _) = document[begins..].split_once("```").expect("the end of the block");
    block.split_whitespace().skip(3).collect()
}

/// Nothing more is asked for than docs/acl.md says, and nothing is refused: the server would have
/// written it down.
#[test]
fn the_documented_permissions_are_enough_for_everything() {
    let rights = acl(include_str!("../../../../../docs/acl.md"));
    assert_eq!(rights, acl(include_str!("../../../../../docs/acl.zh-CN.md")));
    for kind in ServerKind::ALL {
        let server = Server::builder(kind).tcp().start();
        let rights: Vec<_> = rights.iter().copied().filter(|right| *right != ">password").collect();
        let (client, other) = (connect_as(&server, &rights), connect_as(&server, &rights));
        let key = unique_key("order:7");
        let lock = client.lock(&key).ttl(TTL);
        let guard = lock.acquire().unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| other.lock(&key).ttl(TTL).acquire());
            eventually(LIMIT, "it waits", || lock.inspect().unwrap().waiting == Some(1));
            // Long enough for renewals, a watch, and looks.
            hold(TTL * 3 / 2);
            guard.extend(TTL * 2).unwrap();
            guard.revalidate().unwrap();
            let token = guard.detach();
            lock.resume(token).unwrap().unwrap().release().unwrap();
            waiter.join().unwrap().unwrap().release().unwrap();
        });
        let held = lock.acquire().unwrap();
        let stolen = other.lock(&key).steal().unwrap();
        when_lost(&held);
        lock.force_release().unwrap();
        drop(stolen);
        // A broken connection, with something unanswered on it.
        server.cmd(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        eventually(LIMIT, "it works again", || {
            lock.try_acquire().ok().flatten().is_some_and(|guard| guard.release().is_ok())
        });
        let refused = server.cmd(&["ACL", "LOG"]);
        assert!(refused.array().is_empty(), "{kind}: {refused:?}");
    }
}
