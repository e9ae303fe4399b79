//! Taking a lock by force: what arrives late takes nothing from the next holder, and what no lock
//! library writes is left alone.

use std::{pin::Pin, time::Duration};

use smol::{block_on, future::poll_once};
use tenure::{AcquireError, Client, Holder, InspectError, Lock, blocking};
use tenure_testkit::{Proxy, Server, ServerKind, eventually};

use crate::{
    LIMIT, secs,
    servers::{any, behind, exists, get, open, pttl, quorum, scripts},
};

const KEY: &str = "k";
const TTL: Duration = secs(600);

/// One call under way, whatever it comes to.
type Forcing = Pin<Box<dyn Future<Output = bool>>>;

#[test]
fn a_steal_that_arrives_after_its_undo_takes_no_lock() {
    let steal = |lock: Lock| -> Forcing { Box::pin(async move { lock.steal().await.is_ok() }) };
    arrives_late(1, steal);
    arrives_late(3, steal);
}

#[test]
fn a_force_release_that_arrives_after_its_undo_deletes_no_lock() {
    let force =
        |lock: Lock| -> Forcing { Box::pin(async move { lock.force_release().await.is_ok() }) };
    arrives_late(1, force);
    arrives_late(3, force);
}

/// The call's bytes sit in connections that have ended, and no connection may be killed there.
fn arrives_late(count: usize, call: impl Fn(Lock) -> Forcing) {
    let kinds = ServerKind::ALL.into_iter().cycle().take(count);
    let servers: Vec<_> = kinds.map(Server::start).collect();
    open(&servers);
    for server in &servers {
        assert!(server.cmd(&["ACL", "SETUSER", "default", "-client|kill"]).is_ok());
    }
    let proxies: Vec<_> = servers.iter().map(Proxy::to).collect();
    let client = Client::connect(&behind(&proxies)).unwrap();
    // Greeted.
    let warm = client.lock("warm").ttl(TTL);
    block_on(async { warm.acquire().await.unwrap().release().await }).unwrap();
    proxies.iter().for_each(|proxy| proxy.delay_requests(LIMIT * 10));
    let mut forcing = call(client.lock(KEY).ttl(TTL).node_limit(LIMIT));
    assert!(block_on(poll_once(&mut forcing)).is_none());
    let on_the_way = || proxies.iter().all(|proxy| proxy.requests_on_the_way() > 0);
    eventually(LIMIT, "it is on its way", on_the_way);
    for proxy in &proxies {
        proxy.half_open();
        proxy.delay_requests(Duration::ZERO);
    }
    assert!(!block_on(forcing), "whether it was done is unknown");
    let queue = format!("{{{KEY}}}:tenure.queue");
    let undone = || servers.iter().all(|server| exists(server, &queue));
    eventually(LIMIT, "it is undone, and a tombstone says so", undone);

    let other = blocking::Client::connect(&quorum(&servers)).unwrap();
    let guard = other.lock(KEY).ttl(TTL).acquire_within(LIMIT).unwrap();
    let had = |server: &Server| get(server, KEY).bytes() == Some(guard.token().as_bytes());
    eventually(LIMIT, "each has the next holder's key", || servers.iter().all(had));
    for (server, proxy) in servers.iter().zip(&proxies) {
        let before = scripts(server);
        proxy.deliver_late();
        eventually(LIMIT, "the late command arrives", || scripts(server) > before);
    }
    assert!(servers.iter().all(had), "the next holder was robbed");
    assert_eq!(guard.ensure_held().map_err(|loss| loss.reason), Ok(()));
    guard.release().unwrap();
    assert!(servers.iter().all(|server| pttl(server, &queue) > 0), "tombstones end");
}

/// What no lock library writes, and how it is written.
const DATA: [(&str, &[&str]); 6] = [
    ("a value of type hash", &["HSET", "KEY", "a", "1"]),
    ("a value of type list", &["RPUSH", "KEY", "a"]),
    ("a value of type zset", &["ZADD", "KEY", "1", "a"]),
    ("{\\\"user\\\":1}", &["SET", "KEY", "{\"user\":1}", "EX", "600"]),
    ("<xml/>", &["SET", "KEY", "<xml/>"]),
    ("another library's value \"\"", &["SET", "KEY", ""]),
];

#[test]
fn data_at_the_key_is_deleted_only_on_request() {
    let client = blocking::Client::connect(&any().url()).unwrap();
    for (index, (found, write)) in DATA.into_iter().enumerate() {
        for steals in [true, false] {
            let key = format!("data {index} {steals}");
            let write: Vec<_> =
                write.iter().map(|word| if *word == "KEY" { key.as_str() } else { word }).collect();
            any().cmd(&write);
            let before = any().cmd(&["DUMP", &key]);
            let lock = client.lock(&key);
            let words = if steals {
                let error = lock.steal().unwrap_err();
                assert!(matches!(error, AcquireError::NotALock { .. }), "{found}: {error:?}");
                error.to_string()
            } else {
                let error = lock.force_release().unwrap_err();
                assert!(matches!(error, InspectError::NotALock { .. }), "{found}: {error:?}");
                error.to_string()
            };
            assert!(words.contains(found), "{words}");
            assert_eq!(any().cmd(&["DUMP", &key]), before, "{found}: it stays as it was");
            let lock = lock.overwrite_data(true);
            if steals {
                lock.steal().unwrap().release().unwrap();
            } else {
                assert!(lock.force_release().unwrap().is_some(), "{found}");
            }
            assert!(!exists(any(), &key), "{found}");
        }
    }
}

/// Locks of other libraries, without an end, too, are what these calls are for.
#[test]
fn a_value_that_may_be_a_foreign_lock_can_be_taken_by_force() {
    let client = blocking::Client::connect(&any().url()).unwrap();
    let raw = [0xfe_u8; 20];
    let values: [&[u8]; 4] = [b"1", b"0123456789abcdef", b"10.0.0.7:4711/job", &raw];
    for (index, value) in values.into_iter().enumerate() {
        let key = format!("lock of others {index}");
        any().cmd(&[b"SET", key.as_bytes(), value]);
        let was = client.lock(&key).force_release().unwrap();
        assert_eq!(was, Some(Holder::Foreign(value.into())));
        any().cmd(&[b"SET", key.as_bytes(), value]);
        client.lock(&key).steal().unwrap().release().unwrap();
    }
}
