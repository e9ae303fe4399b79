//! A command that timed out may still be executed later.

use std::time::Duration;

use tenure::{NodeErrorKind, Wait};
use tenure_testkit::{scale, unique_key};

use super::{LIMIT, connect, eventually_free, kind_of, ms, private, value};

/// Long: what is gone was released, and has not ended.
const TTL: Duration = Duration::from_secs(600);

/// The server was stopped at the request, so the outcome is unknown; when it continues, it
/// sets the key, and the reaper takes it away again. In every second round two calls time out, so
/// the connection was given up meanwhile, and the undoing comes over another.
#[test]
fn a_key_set_after_the_time_out_is_removed() {
    let server = private().start();
    let client = connect(&server.url());
    for round in 0..scale(2, 50) {
        let key = unique_key("late");
        let other = unique_key("other");
        // A connection that is greeted outlasts the time-out.
        assert!(client.lock(&key).inspect().unwrap().held.is_none());
        let mut monitor = server.monitor();
        let frozen = server.freeze_process();
        for key in [&key, &other].into_iter().take(1 + round % 2) {
            let late = client.lock(key).ttl(TTL).try_acquire();
            assert_eq!(kind_of(late), NodeErrorKind::TimedOut);
        }
        frozen.thaw();
        // The control: the late command was carried out, so there was something to take away.
        monitor.lines_until(|line| line.contains(&format!("\"SET\" \"{key}\"")));
        eventually_free(&server, &key);
        eventually_free(&server, &other);
    }
}

/// The release of an attempt that timed out never hits the next attempt's key: each has its own
/// token.
#[test]
fn the_late_release_of_an_attempt_leaves_the_next_attempt_alone() {
    let server = private().start();
    for _ in 0..scale(4, 500) {
        let key = unique_key("late-release");
        let client = connect(&server.url());
        let lock = client.lock(&key).ttl(TTL);
        let frozen = server.freeze_process();
        assert_eq!(kind_of(lock.acquire_within(ms(60))), NodeErrorKind::TimedOut);
        frozen.thaw();
        let guard = lock.clone().wait(Wait::Within(LIMIT)).acquire().unwrap();
        let ours = Some(guard.token().as_bytes().to_vec());
        assert_eq!(value(&server, &key), ours);
        // Waits for the answers to all releases: those of the earlier attempt too.
        let token = guard.detach();
        client.close().unwrap();
        assert_eq!(value(&server, &key), ours, "the old release took the new key");
        let heir = connect(&server.url()).lock(&key).ttl(TTL).resume(token).unwrap();
        heir.expect("still held").release().unwrap();
    }
}
