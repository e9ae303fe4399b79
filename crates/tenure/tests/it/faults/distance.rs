//! Servers that are far away: time limits follow the way to them, and say so where they cannot.

use std::{error::Error, thread, time::Duration};

use tenure::{
    AcquireError, NodeErrorKind, Renewal,
    blocking::{Client, Lock},
};
use tenure_testkit::{Proxy, eventually, unique_key};

use super::{LIMIT, ms, node_error, shared};
use crate::servers;

/// One server, or several, that are so far away.
struct Far {
    proxies: Vec<Proxy>,
    key: String,
}

impl Far {
    fn away(nodes: usize, round_trip: Duration) -> Self {
        let proxies: Vec<_> = servers::several(nodes).into_iter().map(Proxy::to).collect();
        proxies.iter().for_each(|proxy| proxy.delay_replies(round_trip));
        Self { proxies, key: unique_key("far") }
    }

    /// Of a client that knows nothing of the way.
    fn lock(&self, ttl: Duration) -> Lock {
        let client = Client::connect(&servers::behind(&self.proxies)).unwrap();
        client.lock(&self.key).ttl(ttl)
    }
}

/// The error, with all its causes.
fn words(error: &AcquireError) -> String {
    let error = node_error(error);
    format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default())
}

/// The round trip is longer than the limit that goes with the TTL alone: a quarter of it, or a
/// twentieth.
#[test]
fn a_free_lock_is_acquired_and_kept_over_a_slow_network() {
    thread::scope(|scope| {
        for (nodes, ttl) in [(1, 800), (1, 2_000), (3, 800), (3, 4_000)] {
            scope.spawn(move || {
                let far = Far::away(nodes, ms(200));
                let guard = far.lock(ms(ttl)).acquire_within(LIMIT).unwrap();
                thread::sleep(ms(2 * ttl));
                assert_eq!(
                    guard.ensure_held().map_err(|loss| loss.reason),
                    Ok(()),
                    "{nodes} nodes, TTL {ttl} ms"
                );
                guard.release().unwrap();
            });
        }
    });
}

/// One try must do, too: each run of the command is a client that knows nothing yet.
#[test]
fn a_single_try_reaches_a_distant_server() {
    for nodes in [1, 3] {
        let far = Far::away(nodes, ms(150));
        let guard = far.lock(ms(1_000)).try_acquire().unwrap().expect("it is free");
        guard.release().unwrap();
    }
}

/// A renewal could not be answered in time, so the work would begin and be stopped.
#[test]
fn a_ttl_too_short_for_the_network_is_refused_with_the_ttl_needed() {
    for nodes in [1, 3] {
        let far = Far::away(nodes, ms(200));
        let refused = far.lock(ms(300)).acquire_within(LIMIT).unwrap_err();
        assert_eq!(node_error(&refused).kind(), NodeErrorKind::TooFar, "{refused:?}");
        assert!(!node_error(&refused).is_retryable());
        let words = words(&refused);
        for part in ["round trip", "TTL of 300ms", "set a TTL of at least"] {
            assert!(words.contains(part), "{words}");
        }
        for server in servers::several(nodes) {
            eventually(LIMIT, "it is released", || !servers::exists(server, &far.key));
        }
    }
}

/// Nobody renews it, so what is left of it may be enough.
#[test]
fn a_lock_without_renewal_may_be_short_over_a_slow_network() {
    let far = Far::away(1, ms(200));
    let lock = far.lock(ms(600)).renewal(Renewal::Manual);
    let guard = lock.acquire_within(LIMIT).unwrap();
    assert!(guard.valid_for().is_none_or(|left| left < ms(400)), "{guard:?}");
}

#[test]
fn a_time_limit_that_expired_names_its_source() {
    // A client of its own each time, that has not tried to connect before.
    let says = |nodes, call: fn(Lock) -> AcquireError, parts: &[&str]| {
        let proxies: Vec<_> = servers::several(nodes).into_iter().map(Proxy::to).collect();
        proxies.iter().for_each(Proxy::black_hole);
        let client = Client::connect(&servers::behind(&proxies)).unwrap();
        let error = call(client.lock(unique_key("silent")).ttl(ms(1_600)));
        assert_eq!(node_error(&error).kind(), NodeErrorKind::TimedOut, "{error:?}");
        let words = words(&error);
        assert!(parts.iter().all(|part| words.contains(part)), "{words}");
    };
    for nodes in [1, 3] {
        let by_ttl = |lock: Lock| lock.try_acquire().unwrap_err();
        says(nodes, by_ttl, &["within 500ms", "TTL of 1.6s", "longer TTL or node limit"]);
        let by_setting = |lock: Lock| lock.node_limit(ms(70)).try_acquire().unwrap_err();
        says(nodes, by_setting, &["within 70ms", "node limit that was set"]);
        let by_wait = |lock: Lock| lock.acquire_within(ms(260)).unwrap_err();
        says(nodes, by_wait, &["the rest of the wait"]);
    }
}

/// With one server as with several.
#[test]
fn a_node_limit_that_was_set_is_kept_at_one_server() {
    let proxy = Proxy::to(shared());
    proxy.delay_replies(ms(300));
    let client = Client::connect(&proxy.url()).unwrap();
    let lock = client.lock(unique_key("set")).ttl(ms(60_000));
    let late = lock.clone().node_limit(ms(100)).try_acquire().unwrap_err();
    assert_eq!(node_error(&late).kind(), NodeErrorKind::TimedOut, "{late:?}");
    assert!(lock.node_limit(LIMIT).try_acquire().unwrap().is_some());
}
