//! Nodes that cannot be reached, are tried again, and come back.

use std::time::{Duration, Instant};

use tenure::{
    AcquireError,
    blocking::{Client, Lock},
};
use tenure_testkit::{Proxy, eventually, unique_key};

use super::Nodes;
use crate::{LIMIT, secs, servers};

/// What most attempts take that nobody can tell the outcome of.
fn most_fail_within(lock: &Lock) -> Duration {
    let mut took = [(); 15].map(|()| {
        let began = Instant::now();
        let failed = lock.try_acquire();
        assert!(matches!(failed, Err(AcquireError::NoQuorum(_))), "{failed:?}");
        began.elapsed()
    });
    took.sort_unstable();
    took[took.len() / 2]
}

/// It would be waited for if it were being tried again, and that is promised not to be.
#[test]
fn a_node_that_is_out_of_reach_is_not_waited_for() {
    let (nodes, key) = (Nodes::start(3), unique_key("reach"));
    let lock = nodes.client().lock(&key).node_limit(secs(10));
    lock.acquire().unwrap().release().unwrap();
    nodes.0[1].kill();
    nodes.0[2].kill();
    // The first attempts find that out, and the pauses between them grow.
    most_fail_within(&lock);
    let took = most_fail_within(&lock);
    assert!(took < A_MOMENT, "{took:?}");
}

/// What a node is waited for that is being tried again.
const A_MOMENT: Duration = Duration::from_millis(50);

#[test]
fn a_node_that_is_tried_again_is_waited_for_no_longer_than_a_moment() {
    let (nodes, key) = (Nodes::start(3), unique_key("again"));
    let proxies: Vec<_> = nodes.0[1..].iter().map(Proxy::to).collect();
    let url = |proxy: &Proxy| format!("{}?durable=yes", proxy.address().url());
    let behind: Vec<_> = proxies.iter().map(url).collect();
    let first = servers::quorum(&nodes.0[..1]);
    let client = Client::connect(&format!("{first},{}", behind.join(",")));
    let lock = client.unwrap().lock(&key).node_limit(secs(10));
    lock.acquire().unwrap().release().unwrap();
    // New connections are accepted, and nothing is answered.
    proxies.iter().for_each(Proxy::black_hole);
    proxies.iter().for_each(Proxy::cut);
    let failed = lock.try_acquire();
    assert!(matches!(failed, Err(AcquireError::NoQuorum(_))), "{failed:?}");
    // That took until the connections were given up, 2 s. They are not waited for again, however
    // often they are tried.
    let (before, mut longest) = (proxies[0].accepted(), Duration::ZERO);
    while proxies[0].accepted() < before + 2 {
        let began = Instant::now();
        let failed = lock.try_acquire();
        assert!(matches!(failed, Err(AcquireError::NoQuorum(_))), "{failed:?}");
        longest = longest.max(began.elapsed());
    }
    assert!(longest < secs(1), "{longest:?}");
    proxies.iter().for_each(Proxy::heal);
    lock.acquire_within(LIMIT).unwrap().release().unwrap();
    nodes.becomes_free(&key);
}

#[test]
fn a_node_that_comes_back_is_used_again() {
    let (nodes, key) = (Nodes::start(3), unique_key("back"));
    let lock = nodes.client().lock(&key).ttl(secs(600));
    lock.acquire().unwrap().release().unwrap();
    for _ in 0..2 {
        nodes.0[1].kill();
        nodes.0[2].kill();
        most_fail_within(&lock);
        nodes.0[1].start_again();
        nodes.0[2].start_again();
        let mut guard = None;
        eventually(LIMIT, "they are asked", || {
            guard = lock.try_acquire().ok().flatten();
            guard.is_some()
        });
        let guard = guard.unwrap();
        let token = guard.token().as_str().to_owned();
        eventually(LIMIT, "all have the key", || nodes.having(&key, token.as_bytes()) == 3);
        guard.release().unwrap();
        nodes.becomes_free(&key);
    }
}
