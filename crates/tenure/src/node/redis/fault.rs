//! What a server's error reply means.

use std::sync::Arc;

use tenure_core::Shown;

use crate::{
    address::ServerAddress,
    error::{NodeError, NodeErrorKind},
};

/// An error reply as a [`NodeError`]. The op was not applied: a script's first write fails alike.
///
/// Of the words, what was sent to let this client in is not repeated.
pub(super) fn of_reply(node: &Arc<str>, address: &ServerAddress, words: &str) -> NodeError {
    NodeError::new(node, kind(words)).with_source(shortened(&address.blot_out(words)))
}

/// Whether the server has forgotten the script, or never knew it.
///
/// Only the first word counts: Valkey's sentence is another than Redis's.
pub(super) fn is_noscript(words: &str) -> bool {
    first_word(words) == "NOSCRIPT"
}

/// Whether the server does not run this command, for whatever script: it does not know it, or does
/// not permit this user to.
pub(super) fn refuses(words: &str, command: &str) -> bool {
    let words = words.to_ascii_lowercase();
    let quoted = |quote: char| words.contains(&format!("{quote}{command}{quote}"));
    (words.starts_with("noperm") || words.starts_with("err unknown"))
        && (quoted('\'') || quoted('`'))
}

/// Whether the connection leads to a server that cannot be ours any more, or not yet.
pub(super) fn wants_reconnect(kind: NodeErrorKind) -> bool {
    matches!(kind, NodeErrorKind::ReadOnly | NodeErrorKind::Loading | NodeErrorKind::Down)
}

fn kind(words: &str) -> NodeErrorKind {
    use NodeErrorKind as Kind;
    match first_word(words) {
        // A client that sent a password gets WRONGPASS.
        "NOAUTH" => Kind::PasswordMissing,
        "WRONGPASS" => Kind::Denied,
        "NOPERM" => Kind::NoPermission,
        "READONLY" => Kind::ReadOnly,
        "LOADING" => Kind::Loading,
        "BUSY" => Kind::Busy,
        "OOM" => Kind::OutOfMemory,
        "MISCONF" => Kind::CannotSave,
        "NOREPLICAS" => Kind::NoReplicas,
        "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" => Kind::Down,
        "MOVED" | "ASK" | "CROSSSLOT" => Kind::WrongNode,
        "NOPROTO" => Kind::Protocol,
        _ => kind_of_err(words),
    }
}

/// Errors whose first word is only ERR, known by their texts in Redis 6 to 8 and Valkey 8 and 9.
fn kind_of_err(words: &str) -> NodeErrorKind {
    use NodeErrorKind as Kind;
    let words = words.to_ascii_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if any(&["unknown command", "unknown redis command", "unknown subcommand"]) {
        Kind::UnknownCommand
    } else if any(&["can't run this command", "acl failure in script", "no permissions"]) {
        Kind::NoPermission
    } else if any(&["invalid password", "without any password", "client sent auth"]) {
        Kind::Denied
    } else if any(&["max number of clients"]) {
        Kind::TooManyClients
    } else {
        Kind::Refused
    }
}

fn first_word(words: &str) -> &str {
    words.split_ascii_whitespace().next().unwrap_or_default()
}

/// Without what the server repeats of the command, which may be a whole script, and no longer than
/// a server's own sentences.
fn shortened(words: &str) -> String {
    let words = words.split(", with args").next().unwrap_or(words);
    Shown::new(words).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_kind() {
        use NodeErrorKind as Kind;
        for (words, expected) in [
            ("NOAUTH Authentication required.", Kind::PasswordMissing),
            ("WRONGPASS invalid username-password pair or user is disabled.", Kind::Denied),
            ("ERR AUTH <password> called without any password configured", Kind::Denied),
            ("NOPERM No permissions to access a key", Kind::NoPermission),
            ("ERR The user executing the script can't run this command", Kind::NoPermission),
            ("ERR ACL failure in script: User u has no permissions", Kind::NoPermission),
            ("READONLY You can't write against a read only replica.", Kind::ReadOnly),
            ("LOADING Redis is loading the dataset in memory", Kind::Loading),
            ("BUSY Valkey is busy running a script.", Kind::Busy),
            ("OOM command not allowed when used memory > 'maxmemory'.", Kind::OutOfMemory),
            ("MISCONF Errors writing to the AOF file", Kind::CannotSave),
            ("NOREPLICAS Not enough good replicas to write.", Kind::NoReplicas),
            ("CLUSTERDOWN The cluster is down", Kind::Down),
            ("MOVED 3999 127.0.0.1:6381", Kind::WrongNode),
            ("ERR unknown command 'EVALSHA', with args beginning with: 'x'", Kind::UnknownCommand),
            ("ERR max number of clients reached", Kind::TooManyClients),
            ("ERR syntax error", Kind::Refused),
        ] {
            assert_eq!(kind(words), expected, "{words}");
        }
    }

    #[test]
    fn a_refused_command_is_known_by_its_name() {
        for words in [
            "NOPERM this user has no permissions to run the 'evalsha' command",
            "NOPERM User u has no permissions to run the 'evalsha' command",
            "ERR unknown command `EVALSHA`, with args beginning with: `x`",
        ] {
            assert!(refuses(words, "evalsha") && !refuses(words, "eval"), "{words}");
        }
        assert!(!refuses("NOSCRIPT No matching script. Please use EVAL.", "evalsha"));
        assert!(!refuses("NOPERM No permissions to access a key", "evalsha"));
    }

    #[test]
    fn an_error_repeats_nothing_that_was_sent() {
        let words = "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'hunter2'";
        assert!(!shortened(words).contains("hunter2"));
        assert!(is_noscript("NOSCRIPT No matching script.") && !is_noscript("ERR NOSCRIPT"));
    }
}
