//! What servers see, and what other libraries may rely on.

mod commands;
mod fence;
mod foreign;
mod value;

use tenure::{AcquireError, NodeError};

use crate::servers::any;

/// The one node's error inside a failed acquisition.
fn node_error<T: std::fmt::Debug>(failed: Result<T, AcquireError>) -> NodeError {
    match failed {
        Err(AcquireError::NoQuorum(none)) => none.failed[0].clone(),
        other => panic!("not a node's error: {other:?}"),
    }
}

/// Sends a command to the shared server, with the key in place of the word `K`.
fn put(words: &[&str], key: &str) {
    let words: Vec<&str> =
        words.iter().map(|word| if *word == "K" { key } else { *word }).collect();
    let reply = any().cmd(&words);
    assert!(reply.error().is_none(), "{words:?}: {reply:?}");
}
