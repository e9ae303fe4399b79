//! Five servers: replies that come too late, and processes that are stopped.

use std::{thread, time::Duration};

use rustix::process::Signal;
use tenure::{AcquireError, blocking::Client};
use tenure_testkit::{Gated, Proxy, eventually, scale, unique_key};

use super::{Nodes, all_catch_up};
use crate::{
    LIMIT,
    faults::pause,
    program::{self, Program},
    secs,
    servers::{behind, several},
};

/// Short, since answers take longer, and programs are stopped for three times as long.
const TTL: Duration = secs(2);

/// Longer than any answer takes here, so that validity alone decides.
const NODE_LIMIT: Duration = secs(60);

/// Every one grants it, and every answer comes after the TTL: nothing is held, and each key is
/// deleted, not left to its end.
#[test]
fn a_grant_that_five_servers_report_too_late_is_undone() {
    let nodes = Nodes::start(5);
    let proxies = nodes.proxies();
    let client = Client::connect(&behind(&proxies)).unwrap();
    for _ in 0..scale(2, 50) {
        let key = unique_key("too-late");
        let lock = client.lock(&key).ttl(TTL).node_limit(NODE_LIMIT);
        // Its connections are there, and quiet.
        assert!(lock.inspect().unwrap().held.is_none());
        all_catch_up(&lock);
        nodes.grant_too_late(&proxies, &lock, &key, TTL * 3 / 2);
    }
}

/// Two of the five grants have reached the client when it is stopped, and the others are there when
/// it runs on: by then they are worth nothing.
#[test]
fn a_client_stopped_between_grants_gets_an_error_and_no_lease() {
    let nodes = Nodes::start(5);
    for _ in 0..scale(1, 50) {
        let (proxies, key) = (nodes.proxies(), unique_key("stopped"));
        let settings = [("SERVERS", behind(&proxies)), ("KEY", key.clone())];
        let settings: Vec<_> = settings.iter().map(|(name, text)| (*name, &**text)).collect();
        let mut client = Program::start("acquire on request", &settings);
        assert_eq!(client.hear(), "ready");
        let late = &proxies[2..];
        late.iter().for_each(|proxy| proxy.gate_replies(0, Gated::Held));
        client.tell("acquire");
        nodes.prolong(&key);
        eventually(LIMIT, "three grants are on their way", || late.iter().all(Proxy::gate_was_met));
        client.stop();
        late.iter().for_each(Proxy::heal);
        // The pause itself is what is tested: it outlasts the lease.
        thread::sleep(3 * TTL);
        client.signal(Signal::CONT);
        assert_eq!(client.hear(), "no quorum");
        nodes.becomes_free(&key);
        client.tell("end");
        client.end_well();
    }
}

/// The client: says what an acquisition comes to in the midst of which it is stopped.
pub(super) fn acquirer() {
    let client = Client::connect(&program::setting("SERVERS")).unwrap();
    client.lock(unique_key("warm")).acquire_within(LIMIT).unwrap().release().unwrap();
    program::say("ready");
    program::heed();
    let lock = client.lock(program::setting("KEY")).ttl(TTL).node_limit(NODE_LIMIT);
    let outcome = lock.try_acquire();
    program::say(match &outcome {
        Err(AcquireError::NoQuorum(_)) => "no quorum",
        Ok(Some(_)) => "held",
        Ok(None) | Err(_) => "something else",
    });
    program::heed();
}

#[test]
fn a_stopped_holder_over_five_servers_is_notified_and_fenced_off() {
    for _ in 0..scale(2, 100) {
        pause::a_stopped_holder_is_told_and_fenced_off(&several(5));
    }
}
