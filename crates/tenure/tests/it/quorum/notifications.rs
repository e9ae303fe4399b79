//! Waiters for a lock of several servers are notified of its release, and poll where they are
//! not.

use std::{
    thread,
    time::{Duration, Instant},
};

use tenure::blocking::{Client, Lock};
use tenure_testkit::{Proxy, Raw, Server, eventually, unique_key};

use super::{Nodes, all_catch_up};
use crate::{LIMIT, ms, ran_out, secs, servers};

fn channel(key: &str) -> String {
    format!("tenure:free:{key}")
}

/// Waits until so many connections to each node listen for the lock.
fn listening(nodes: &Nodes, key: &str, connections: i64) {
    let count = |node: &Server| node.cmd(&["PUBSUB", "NUMSUB", &channel(key)]).array()[1].int();
    eventually(LIMIT, "they listen", || nodes.0.iter().all(|node| count(node) == connections));
}

/// Waits until nobody listens for any lock.
fn nobody_listens(nodes: &Nodes) {
    let channels = |node: &Server| node.cmd(&["PUBSUB", "CHANNELS", "tenure:free:*"]);
    eventually(LIMIT, "nobody listens", || {
        nodes.0.iter().all(|node| channels(node).array().is_empty())
    });
}

/// The only waiter tries once for each notification, which is far oftener than it would poll.
fn tries_for_each_hint(nodes: &Nodes, key: &str) {
    const NOTIFICATIONS: u32 = 60;
    let began = Instant::now();
    for notification in 0..NOTIFICATIONS {
        let before = nodes.scripts();
        let node = &nodes.0[notification as usize % nodes.0.len()];
        assert_eq!(node.cmd(&["PUBLISH", &channel(key), "f"]).int(), 1);
        eventually(LIMIT, "it tries", || nodes.scripts() > before);
    }
    let polls = began.elapsed().as_millis() / MIN_POLL.as_millis();
    assert!(u128::from(NOTIFICATIONS) > 2 * polls, "{polls} polls would do");
}

/// Half of the longest pause: the shortest, once it has waited for some time.
const MIN_POLL: Duration = Duration::from_millis(125);

fn held(client: &Client, key: &str) -> Lock {
    client.lock(key).ttl(secs(600))
}

#[test]
fn a_notification_from_any_node_makes_a_waiter_try() {
    let (nodes, key) = (Nodes::start(3), unique_key("notification"));
    let guard = held(&nodes.client(), &key).acquire().unwrap();
    let lock = held(&nodes.client(), &key);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.acquire_within(LIMIT * 2).unwrap().release());
        listening(&nodes, &key, 1);
        tries_for_each_hint(&nodes, &key);
        guard.release().unwrap();
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn a_waiter_subscribes_again_after_a_reconnect() {
    let (nodes, key) = (Nodes::start(3), unique_key("again"));
    let guard = held(&nodes.client(), &key).acquire().unwrap();
    let lock = held(&nodes.client(), &key);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| lock.acquire_within(LIMIT * 2).unwrap().release());
        listening(&nodes, &key, 1);
        for node in &nodes.0 {
            let killed =
                ["normal", "pubsub"].map(|kind| node.cmd(&["CLIENT", "KILL", "TYPE", kind]));
            assert!(killed.iter().map(tenure_testkit::Value::int).sum::<i64>() >= 1);
        }
        listening(&nodes, &key, 1);
        tries_for_each_hint(&nodes, &key);
        guard.release().unwrap();
        waiter.join().unwrap().unwrap();
    });
}

/// A subscriber at each node.
fn listeners(nodes: &Nodes, key: &str) -> Vec<Raw> {
    let listener = |node: &Server| {
        let mut raw = node.raw();
        raw.cmd(&["SUBSCRIBE", &channel(key)]);
        raw
    };
    nodes.0.iter().map(listener).collect()
}

/// How many notifications each of them got since the last count. A server answers in order, so
/// all of them are in front of the answer to PING.
fn notifications(listeners: &mut [Raw]) -> Vec<usize> {
    let count = |raw: &mut Raw| {
        raw.send(&["PING", "x"]);
        let kinds = || raw.receive().array()[0].text().map(str::to_owned);
        std::iter::repeat_with(kinds).take_while(|kind| kind.as_deref() != Some("pong")).count()
    };
    listeners.iter_mut().map(count).collect()
}

#[test]
fn each_node_notifies_once_of_a_release_and_never_of_an_undo() {
    let (nodes, key) = (Nodes::start(3), unique_key("reported"));
    let mut listeners = listeners(&nodes, &key);
    let lock = held(&nodes.client(), &key);
    for node in &nodes.0[..2] {
        assert!(node.cmd(&["SET", &key, "theirs", "PX", "600000"]).is_ok());
    }
    assert!(lock.try_acquire().unwrap().is_none());
    // The third has granted, since it has a number; and then it was asked to forget.
    let fence = format!("{{{key}}}:tenure.fence");
    eventually(LIMIT, "it was granted", || servers::exists(&nodes.0[2], &fence));
    eventually(LIMIT, "it is undone", || !servers::exists(&nodes.0[2], &key));
    assert_eq!(notifications(&mut listeners), [0; 3]);
    nodes.0.iter().for_each(|node| _ = node.cmd(&["DEL", &key]));

    lock.acquire_within(LIMIT).unwrap().release().unwrap();
    all_catch_up(&lock);
    assert_eq!(notifications(&mut listeners), [1; 3]);
    let token = lock.acquire_within(LIMIT).unwrap().detach();
    lock.release(&token).unwrap();
    all_catch_up(&lock);
    assert_eq!(notifications(&mut listeners), [1; 3], "by token, too");
    let guard = lock.acquire_within(LIMIT).unwrap();
    assert!(lock.force_release().unwrap().is_some());
    assert_eq!(notifications(&mut listeners), [1; 3]);
    drop(guard.release());
    lock.acquire_within(LIMIT).unwrap().release().unwrap();
    all_catch_up(&lock);
    assert_eq!(notifications(&mut listeners), [1; 3], "the lost lease sent no notification");
}

#[test]
fn a_waiter_that_gives_up_unsubscribes() {
    let (nodes, key) = (Nodes::start(3), unique_key("no-more"));
    let clients = [nodes.client(), nodes.client()];
    let guard = held(&clients[0], &key).acquire().unwrap();
    nobody_listens(&nodes);
    assert!(ran_out(&held(&clients[1], &key).acquire_within(ms(100))));
    nobody_listens(&nodes);
    thread::scope(|scope| {
        let wait = |client: &Client| {
            let lock = held(client, &key);
            scope.spawn(move || lock.acquire_within(LIMIT * 2).unwrap().release())
        };
        let waiters = [0, 0, 1, 1].map(|client| wait(&clients[client]));
        listening(&nodes, &key, 2);
        guard.release().unwrap();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap().unwrap());
    });
    nobody_listens(&nodes);
}

#[test]
fn a_dropped_acquisition_unsubscribes() {
    let (nodes, key) = (Nodes::start(3), unique_key("dropped"));
    let guard = held(&nodes.client(), &key).acquire().unwrap();
    // It outlives the wait, and so do its connections.
    let client = tenure::Client::connect(&nodes.urls()).unwrap();
    let lock = client.lock(&key);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let waiter = runtime.spawn(async move { lock.acquire().await });
    listening(&nodes, &key, 1);
    waiter.abort();
    nobody_listens(&nodes);
    guard.release().unwrap();
}

/// No notification arrives, and no waiter relies on one: they poll, and not too often.
#[test]
fn waiters_poll_where_notifications_are_dropped() {
    let (nodes, key) = (Nodes::start(3), unique_key("swallowed"));
    let proxies = nodes.proxies();
    proxies.iter().for_each(Proxy::drop_messages);
    let client = Client::connect(&servers::behind(&proxies)).unwrap();
    let holding = held(&nodes.client(), &key);
    let guard = holding.acquire().unwrap();
    all_catch_up(&holding);
    thread::scope(|scope| {
        let (before, began) = (nodes.scripts(), Instant::now());
        let waiter = scope.spawn(|| held(&client, &key).acquire_within(LIMIT).unwrap().release());
        listening(&nodes, &key, 1);
        eventually(LIMIT, "it polls", || nodes.scripts() > before + 3 * 8);
        let polls = (nodes.scripts() - before) / 3;
        // The first five pauses are shorter.
        let most = i64::try_from(began.elapsed().as_millis() / MIN_POLL.as_millis()).unwrap();
        assert!(polls <= most + 7, "{polls} polls, at most {most} and the first ones");
        guard.release().unwrap();
        waiter.join().unwrap().unwrap();
    });
    nobody_listens(&nodes);
}

/// The connections of the library to all nodes, by their numbers.
fn connections(nodes: &Nodes) -> Vec<String> {
    let list = |node: &Server| node.cmd(&["CLIENT", "LIST"]).text().unwrap().to_owned();
    let lists: Vec<_> = nodes.0.iter().map(list).collect();
    let ours =
        lists.iter().flat_map(|list| list.lines()).filter(|line| line.contains("name=tenure"));
    ours.filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

#[test]
fn users_without_channels_poll_and_are_served() {
    let nodes = Nodes::start(3);
    for refusal in ["resetchannels", "-subscribe", "-unsubscribe", "-pubsub", "-publish"] {
        let key = unique_key("refused");
        for node in &nodes.0 {
            let user = ["ACL", "SETUSER", "u", "on", "nopass", "~*", "&*", "+@all", refusal];
            assert!(node.cmd(&user).is_ok(), "{refusal}");
        }
        let urls = nodes.urls().replace("redis://", "redis://u:x@");
        let guard = held(&Client::connect(&urls).unwrap(), &key).acquire().unwrap();
        thread::scope(|scope| {
            let waiters = [(); 3].map(|()| {
                let lock = held(&Client::connect(&urls).unwrap(), &key);
                scope.spawn(move || lock.acquire_within(LIMIT * 2).unwrap().release())
            });
            let of_all = nodes.0.len() * (1 + waiters.len());
            eventually(LIMIT, refusal, || connections(&nodes).len() == of_all);
            let (before, polls) = (connections(&nodes), nodes.scripts());
            eventually(LIMIT, "they poll", || nodes.scripts() > polls + 3 * 3 * 3);
            assert_eq!(connections(&nodes), before, "a refusal ended a connection: {refusal}");
            guard.release().unwrap();
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap().unwrap());
        });
        nodes.becomes_free(&key);
        nobody_listens(&nodes);
    }
}
