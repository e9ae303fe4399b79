//! A lock that is deleted while others wait: it is not handed over, and no message is sent.

use std::thread;

use tenure::blocking::Client;
use tenure_testkit::{Server, ServerKind, eventually, unique_key};

use crate::{LIMIT, secs};

/// Deletes a lock under its holder: the head of the queue has it long before the end that it
/// read, and the next waiter after that.
fn is_noticed_by_the_head(server: &Server, delete: impl Fn(&str)) {
    let key = unique_key("deleted");
    let connect = || Client::connect(&server.url()).unwrap();
    let holder = connect().lock(&key).ttl(secs(3_600)).acquire().unwrap();
    let waiting = |count| {
        let inspection = connect().lock(&key).inspect().unwrap();
        inspection.waiting == Some(count)
    };
    thread::scope(|scope| {
        let mut waiters = Vec::new();
        let mut monitor = server.monitor();
        for count in 1..=2 {
            let lock = connect().lock(&key);
            waiters.push(scope.spawn(move || lock.acquire_within(LIMIT).map(drop)));
            eventually(LIMIT, "it waits", || waiting(count));
        }
        // The head has polled, and knows whether it will be notified.
        monitor.lines_until(|line| line.contains(&key) && line.contains("\"ZRANK\""));
        monitor.lines_until(|line| line.contains(&key) && line.contains("\"ZRANK\""));
        monitor.lines_until(|line| line.contains(&key) && line.contains("\"ZRANK\""));
        delete(&key);
        for waiter in waiters {
            waiter.join().unwrap().expect("long before the TTL that it read");
        }
    });
    assert!(holder.ensure_held().is_err() || holder.release().is_err());
}

#[test]
fn a_deleted_lock_goes_to_the_head_of_the_queue_at_once() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        is_noticed_by_the_head(&server, |key| _ = server.cmd(&["DEL", key]));
        is_noticed_by_the_head(&server, |key| _ = server.cmd(&["UNLINK", key]));
    }
}

/// A user that may not have keys tracked: the head looks once a second.
#[test]
fn without_tracking_a_deleted_lock_goes_to_the_head_of_the_queue() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        server.cmd(&["ACL", "SETUSER", "default", "-client|tracking"]);
        is_noticed_by_the_head(&server, |key| _ = server.cmd(&["DEL", key]));
    }
}
