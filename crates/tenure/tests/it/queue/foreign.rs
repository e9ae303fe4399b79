//! Holders of other libraries: their release sends no message, so the head of the queue, and only
//! the head, polls ten times a second.

use std::{thread, time::Instant};

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, eventually, scale, unique_key};

use super::line::{Line, figure, nothing_is_left};
use crate::{
    LIMIT, ms, secs,
    servers::{any, exists, scripts},
};

/// A value without an "@", and one without a TTL.
#[test]
fn the_head_alone_polls_a_foreign_holder() {
    thread::scope(|scope| {
        for words in [
            &["SET", "k", "6f1ed002ab5595859014ebf0951522d9", "PX", "600000"][..],
            &["SET", "k", "walrus"],
        ] {
            scope.spawn(|| look_after(words));
        }
    });
}

fn look_after(words: &[&str]) {
    let server = Server::start(ServerKind::Redis70);
    assert!(server.cmd(words).error().is_none());
    let clients = [(); 4].map(|()| Client::connect(&server.url()).unwrap());
    let mut line = Line::before(clients[0].lock("k"));
    let waiters = scale(20, 200);
    for who in 0..waiters {
        line.join(&clients[who % clients.len()].lock("k"));
    }
    let (before, began) = (scripts(&server), Instant::now());
    thread::sleep(secs(scale(2, 30) as u64));
    let (looks, time) = (scripts(&server) - before, began.elapsed());
    // Once in 75 to 125 ms, and one at either end.
    let most = i64::try_from(time.as_millis() / 75).unwrap() + 2;
    assert!(looks <= most, "{looks} looks in {time:?} with {waiters} waiters: {words:?}");
    assert!(looks >= 1, "nobody looks");
    let began = Instant::now();
    assert_eq!(server.cmd(&["DEL", "k"]).int(), 1);
    figure("foreign holder deleted: the head", line.next().at - began, ms(250));
    line.was_served_in_order();
    assert!(nothing_is_left(&server, "k"));
}

/// A foreign holder comes in between, while ours wait: they wait for it too, and keep their order.
#[test]
fn a_foreign_holder_in_between_does_not_change_the_order() {
    let key = unique_key("in-between");
    let client = Client::connect(&any().url()).unwrap();
    let guard = client.lock(&key).ttl(secs(600)).acquire().unwrap();
    let mut line = Line::before(client.lock(&key));
    (0..5).for_each(|_| line.join(&client.lock(&key)));
    // By force, as an administrator might.
    assert!(any().cmd(&["SET", &key, "theirs", "PX", "300"]).is_ok());
    drop(guard.release().unwrap_err());
    eventually(LIMIT, "it ends", || !exists(any(), &key));
    // No waiter was notified. A new one finds the lock free, and hands it to the head.
    line.ask(&client.lock(&key));
    line.was_served_in_order();
}
