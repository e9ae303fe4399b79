//! A lease that goes from one client to another, while a request of the first is still on its way.

use tenure::{
    ReleaseError,
    blocking::{Client, Lock},
};
use tenure_core::Token;
use tenure_testkit::{Proxy, eventually, unique_key};

use super::{Nodes, all_catch_up};
use crate::{
    LIMIT, secs,
    servers::{behind, exists, scripts},
};

/// Detached while the third of three has yet to be asked, and released by another client.
fn given_back_elsewhere(give_back: impl Fn(&Lock, Token)) {
    let (nodes, key) = (Nodes::start(3), unique_key("detached"));
    let proxies = nodes.proxies();
    let client = Client::connect(&behind(&proxies)).unwrap();
    let lock = client.lock(&key).ttl(secs(600));
    all_catch_up(&lock);
    proxies[2].delay_requests(LIMIT * 10);
    let token = lock.acquire().unwrap().detach();
    let is_asked = |proxy: &Proxy| proxy.requests_on_the_way() > 0;
    eventually(LIMIT, "its request is on its way", || is_asked(&proxies[2]));
    assert!(!exists(&nodes.0[2], &key));
    let other = nodes.client();
    let heir = other.lock(&key).ttl(secs(600));
    give_back(&heir, token);
    all_catch_up(&heir);
    let before = scripts(&nodes.0[2]);
    proxies[2].heal();
    eventually(LIMIT, "the late request arrives", || scripts(&nodes.0[2]) > before);
    assert!(!exists(&nodes.0[2], &key), "the key was created again");
    nodes.becomes_free(&key);
}

#[test]
fn a_late_request_of_a_detached_lease_creates_no_released_key() {
    given_back_elsewhere(|lock, token| lock.release(&token).unwrap());
}

#[test]
fn a_late_request_of_a_resumed_lease_creates_no_released_key() {
    given_back_elsewhere(|lock, token| {
        lock.resume(token).unwrap().expect("two of three have it").release().unwrap();
    });
}

/// A majority that an earlier release reached is enough to know of it, whatever the others say.
#[test]
fn a_majority_recognises_a_second_release_with_one_server_silent_or_behind() {
    let (nodes, key) = (Nodes::start(3), unique_key("twice"));
    let proxies = nodes.proxies();
    let client = Client::connect(&behind(&proxies)).unwrap();
    let lock = client.lock(&key).ttl(secs(600));
    let token = lock.acquire().unwrap().detach();
    all_catch_up(&lock);
    proxies[2].black_hole();
    lock.release(&token).unwrap();
    let already = || {
        let again = lock.release(&token);
        let is_already = matches!(again, Err(ReleaseError::AlreadyReleased { .. }));
        assert!(is_already, "{again:?}");
    };
    already();
    assert!(exists(&nodes.0[2], &key), "it has yet to be released there");
    proxies[2].heal();
    already();
    nodes.becomes_free(&key);
}
