//! The one key that tenure derives.

use tenure::{NodeErrorKind, blocking::Client};
use tenure_testkit::{Server, ServerKind, unique_key};

use super::{node_error, put};
use crate::servers::{any, exists};

#[test]
fn an_invalid_fence_key_is_a_clear_error_and_leaves_no_lock() {
    let client = Client::connect(&any().url()).unwrap();
    let last = "9007199254740991";
    for words in [
        &["RPUSH", "K", "x"][..],
        &["HSET", "K", "f", "1"],
        &["SET", "K", "not a number"],
        &["SET", "K", "-1"],
        &["SET", "K", "1e3"],
        &["SET", "K", ""],
        &["SET", "K", "9007199254740992"],
        &["SET", "K", last],
    ] {
        let key = unique_key("fence");
        let fence = format!("{{{key}}}:tenure.fence");
        put(words, &fence);
        let lock = client.lock(&key);
        for failed in [lock.acquire(), lock.steal()] {
            let error = node_error(failed);
            assert_eq!(error.kind(), NodeErrorKind::FenceUnusable, "{words:?}");
            assert!(!error.is_retryable());
            assert!(error.to_string().contains("fence key"), "{error}");
        }
        assert!(!exists(any(), &key), "{words:?} left a lock");
        // What is not ours stays as it was.
        assert!(exists(any(), &fence), "{words:?}");
        assert_eq!(lock.inspect().unwrap().held, None);
    }
}

#[test]
fn numbers_grow_past_a_flush_of_everything() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let client = Client::connect(&server.url()).unwrap();
        let lock = client.lock("k");
        let before = lock.acquire().unwrap();
        assert!(server.cmd(&["FLUSHALL"]).is_ok());
        let after = lock.acquire().unwrap();
        assert!(after.fencing_token() > before.fencing_token(), "{kind}");
        assert!(server.cmd(&["FLUSHALL"]).is_ok());
        let last = lock.steal().unwrap();
        assert!(last.fencing_token() > after.fencing_token(), "{kind}");
        drop((before, after));
        last.release().unwrap();
    }
}

#[test]
fn locks_with_similar_names_share_no_counter() {
    let name = unique_key("like");
    let client = Client::connect(&any().url()).unwrap();
    let keys = [name.clone(), format!("{{{name}}}"), format!("{{{{{name}}}"), format!("{name}}}")];
    let guards: Vec<_> = keys.iter().map(|key| client.lock(key).acquire().unwrap()).collect();
    let fences = any().cmd(&["KEYS", &format!("*{name}*:tenure*fence")]);
    assert_eq!(fences.array().len(), keys.len(), "{fences:?}");
    for (key, guard) in keys.iter().zip(guards) {
        let inspection = client.lock(key).inspect().unwrap();
        assert_eq!(inspection.last_number, Some(guard.fencing_token()), "{key}");
        guard.release().unwrap();
    }
}
