//! The queue, as tables: who is in it, the request, the reply, who is in it afterwards,
//! and who is notified. Alice sends the request; bob, carol and dave are others.

mod hand_over;
mod inspect;
mod join;
mod leave;
mod poll;
mod serve;
mod story;
mod trouble;

use tenure_core::{Channel, Entry, Notification, Place, Ticket};

use super::*;
use crate::listeners::{Listeners, channels};
use crate::steps::TOMBSTONES;

/// One row of a table: its name; the lock's key, the fence key and the queue's key before; the op;
/// the reply; the three keys after; who is notified, in order.
struct Case(&'static str, [Seen; 3], Op, Reply, [Seen; 3], Vec<Notification>);

/// Checks the rows on every kind of server.
fn check(cases: &[Case]) {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let mut listeners = Listeners::start(&node.server);
        for Case(name, before, op, reply, after, notifications) in cases {
            node.reset();
            put(&mut node, before);
            assert_eq!(node.ask(op).as_ref(), Ok(reply), "{kind}: {name}: the reply");
            assert_eq!(node.look_at_all(&[lock()]).0, after, "{kind}: {name}: afterwards");
            let mark = listeners.mark();
            node.cmd(&mark);
            let expected =
                |notification: &Notification| (notification.to().to_string(), notification.text());
            let expected: Vec<_> = notifications.iter().map(expected).collect();
            assert_eq!(listeners.published(), expected, "{kind}: {name}: who is notified");
            let received: usize = listeners.heard().values().map(Vec::len).sum();
            assert_eq!(received, expected.len(), "{kind}: {name}: all of it is received");
        }
    }
}

fn carol() -> Token {
    Token::new(0xca401, &HolderLabel::new("carol/3").unwrap())
}

fn dave() -> Token {
    Token::new(0xda7e, &HolderLabel::new("dave/4").unwrap())
}

fn holder(token: &Token) -> Holder {
    Holder::from_value(token.as_bytes())
}

/// The channel of a connection that lives: 0, 1, 2 or 3.
fn live(connection: usize) -> Channel {
    channels().swap_remove(connection)
}

/// The channel of a connection that is gone.
fn dead() -> Channel {
    channels().swap_remove(4)
}

/// A provisional grant of a second.
fn entry(channel: Channel) -> Entry {
    Entry { channel, grant_ttl: ttl(1_000) }
}

/// A member of the queue: its ticket, who, and where it listens.
fn waits(ticket: u64, token: &Token, channel: Channel) -> (u64, Vec<u8>) {
    (ticket, entry(channel).member(token))
}

/// A tombstone, so many milliseconds old.
fn tombstone(token: &Token, age_ms: u64) -> (u64, Vec<u8>) {
    (TOMBSTONES + NOW / 1_000 - age_ms, [b"!", token.as_bytes()].concat())
}

/// What stands beside the tombstone of a token that held the lock when it was released.
fn released_by(token: &Token, age_ms: u64) -> (u64, Vec<u8>) {
    let (score, member) = tombstone(token, age_ms);
    (score, [&member[..], b" released"].concat())
}

fn queue(members: &[(u64, Vec<u8>)], pttl: i64) -> Seen {
    Seen { kind: "zset".to_owned(), members: members.to_vec(), pttl, ..nothing() }
}

/// Alice comes over connection 0, for the first time.
fn first_time() -> Place {
    Place { entry: entry(live(0)), ticket: None, previous: None, suspect: None }
}

/// Alice comes with a ticket.
fn with_ticket(ticket: u64) -> Place {
    Place { ticket: Ticket::new(ticket), ..first_time() }
}

/// Alice asks for the lock for 10 s, and waits if need be.
fn join(place: Place) -> Op {
    Op::Acquire { key: lock(), token: ours(), ttl: ttl(10_000), proposal: None, place: Some(place) }
}

fn queued(held: Held, ticket: u64, position: u64) -> Reply {
    Reply::Queued { held, ticket: Ticket::new(ticket).unwrap(), position }
}

fn grant(connection: usize, token: &Token) -> Notification {
    Notification::Grant { to: live(connection), token: token.as_str().into() }
}

fn successor_watch(connection: usize, token: &Token, granted: usize) -> Notification {
    let (to, granted) = (live(connection), live(granted));
    Notification::SuccessorWatch { to, token: token.as_str().into(), grant_ttl_ms: 1_000, granted }
}

/// The lock of a waiter that was served, for its provisional grant, and its number.
fn served(waiter: &Token) -> [Seen; 2] {
    [token(waiter, 1_000), fence(NOW, DAY + 1_000)]
}

/// What the queue's key has above the lock's.
const EXTRA: i64 = 90_000;
