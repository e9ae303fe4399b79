//! A holder that was stopped past its lease.

use std::time::Duration;

use rustix::process::Signal;
use tenure::{FENCED_SET, FenceGate, FencingToken, Token, Wait};
use tenure_testkit::{Server, Value, eventually, scale, unique_key};

use super::{
    LIMIT, connect, is_free,
    program::{self, Program},
    shared,
};
use crate::servers;

/// Short, since the holder stops for twice as long.
const TTL: Duration = Duration::from_millis(500);

/// A holder that was stopped knows at its first look that it is too late; and whether it looks or
/// not, the resource that checks numbers refuses it, while one that does not is overwritten.
#[test]
fn a_holder_stopped_past_its_lease_is_notified_and_fenced_off() {
    for _ in 0..scale(3, 100) {
        a_stopped_holder_is_told_and_fenced_off(&[shared()]);
    }
}

/// The resource is on the first of the nodes.
pub(crate) fn a_stopped_holder_is_told_and_fenced_off(nodes: &[&Server]) {
    let (key, server) = (unique_key("pause"), nodes[0]);
    let url = servers::quorum(nodes.iter().copied());
    let mut holder = Program::start("hold", &[("SERVER", &url), ("KEY", &key)]);
    let (number, token) = parse(&holder.hear());
    let gate = FenceGate::new();
    assert!(gate.admit(number, &token).is_ok());
    assert_eq!(write(server, &key, number, &token, "early"), Value::Int(1));

    holder.signal(Signal::STOP);
    // Twice its TTL: it is stopped for as long as that and the other's way to the lock take.
    std::thread::sleep(2 * TTL);
    eventually(LIMIT, "the stopped holder's key has ended", || {
        nodes.iter().all(|node| is_free(node, &key))
    });
    let other = connect(&url).lock(&key).ttl(TTL).wait(Wait::Within(LIMIT));
    let other = other.acquire().unwrap();
    assert!(other.fencing_token() > number);
    assert!(gate.admit(other.fencing_token(), other.token()).is_ok());
    assert_eq!(write(server, &key, other.fencing_token(), other.token(), "late"), Value::Int(1));

    // The holder is about to look when it wakes up, and then writes without looking.
    holder.tell("look");
    holder.signal(Signal::CONT);
    assert_eq!(holder.hear(), "None Err lost");
    assert!(gate.admit(number, &token).is_err(), "the stale holder is let in");
    assert_eq!(write(server, &key, number, &token, "stale"), Value::Int(0));
    let stored = server.cmd(&["GET", &format!("{key}-fenced")]);
    assert_eq!(stored.text(), Some("late"));
    // The control: what is not fenced is overwritten by the one whose lease has ended.
    let unfenced = server.cmd(&["GET", &format!("{key}-unfenced")]);
    assert_eq!(unfenced.text(), Some("stale"));
    assert!(other.ensure_held().is_ok());
    holder.tell("end");
    holder.end_well();
    other.release().expect("the stale holder's end touched no key of ours");
}

/// The holder: says its number, is stopped, looks, writes.
pub(super) fn holder() {
    let client = connect(&program::setting("SERVER"));
    let guard = client.lock(program::setting("KEY")).ttl(TTL).acquire_within(LIMIT).unwrap();
    program::say(&format!("{} {}", guard.fencing_token(), guard.token().as_str()));
    // Stopped in here. The line is there before it runs on, so the first thing that it does then
    // is to look.
    program::heed();
    let valid_for = guard.valid_for();
    let held = guard.ensure_held().map_or("Err", |()| "Ok");
    drop(guard.lost());
    program::say(&format!("{valid_for:?} {held} lost"));
    program::heed();
}

/// Writes to a resource that checks numbers, whose word is returned, and to one that does not.
fn write(server: &Server, key: &str, number: FencingToken, token: &Token, what: &str) -> Value {
    let mut raw = server.raw();
    raw.cmd(&["SET", &format!("{key}-unfenced"), what]);
    let number = number.to_string();
    let (resource, largest) = (format!("{key}-fenced"), format!("{key}-fenced:largest"));
    raw.cmd(&["EVAL", FENCED_SET, "2", &resource, &largest, &number, token.as_str(), what])
}

fn parse(line: &str) -> (FencingToken, Token) {
    let (number, token) = line.split_once(' ').expect("a number and a token");
    (FencingToken::new(number.parse().unwrap()).unwrap(), token.parse().unwrap())
}
