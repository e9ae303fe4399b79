//! What each script does, as a table: what stands there, what is asked, the reply, what stands
//! there afterwards. On every kind of server, with the clock at [`START_US`].

mod acquire;
mod fence;
mod notification;
mod queue;
mod quorum;
mod refusals;
mod release;
mod renew;
mod wire;

use std::time::Duration;

use tenure_core::{
    FencingToken, Held, Holder, HolderLabel, LockKey, Next, Op, Release, RenewRequest, Reply,
    Token, Ttl, TtlLeft,
};
use tenure_testkit::ServerKind;

use crate::node::{Node, START_US, Seen};
use crate::steps::{Scored, Write};

/// One row of a table: its name; the lock's key and the fence key before; the op; the reply; the
/// two keys after.
struct Case(&'static str, [Seen; 2], Op, Reply, [Seen; 2]);

/// Checks the rows on every kind of server.
fn check(cases: &[Case]) {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        for Case(name, before, op, reply, after) in cases {
            node.reset();
            put(&mut node, before);
            assert_eq!(node.ask(op).as_ref(), Ok(reply), "{kind}: {name}: the reply");
            let (keys, size) = node.look(&[lock()]);
            assert_eq!(keys, after, "{kind}: {name}: what stands there afterwards");
            let own = after.iter().filter(|seen| **seen != nothing()).count();
            assert_eq!(usize::try_from(size), Ok(own), "{kind}: {name}: keys left");
        }
    }
}

/// Puts what should stand at the first keys of [`lock`].
fn put(node: &mut Node, before: &[Seen]) {
    let keys = [lock().as_bytes().to_vec(), lock().fence(), lock().queue()];
    for (key, seen) in keys.iter().zip(before) {
        let end = u64::try_from(seen.pttl).ok();
        let writes = match (seen.kind.as_str(), &seen.value) {
            ("none", _) => continue,
            (_, Some(value)) => vec![Write::Text(value.clone(), end)],
            ("hash", None) => vec![Write::Other("hash")],
            ("zset", None) => {
                let scored = |(score, member): &(u64, Vec<u8>)| Scored(*score, member.clone());
                vec![Write::Put(seen.members.iter().map(scored).collect())]
            }
            (other, None) => panic!("no table needs a {other}"),
        };
        let ends = end.filter(|_| seen.value.is_none()).map(Write::Expire);
        let commands: Vec<_> =
            writes.iter().chain(&ends).flat_map(|write| write.commands(key)).collect();
        for reply in node.pipeline(&commands) {
            assert_eq!(reply.error(), None);
        }
    }
}

fn lock() -> LockKey {
    LockKey::new("order:7").unwrap()
}

/// The token that asks.
fn ours() -> Token {
    Token::new(0xa11ce, &HolderLabel::new("alice/1").unwrap())
}

/// The token of another client of ours.
fn theirs() -> Token {
    Token::new(0xb0b, &HolderLabel::new("bob/2").unwrap())
}

fn ttl(ms: u64) -> Ttl {
    Ttl::new(Duration::from_millis(ms)).unwrap()
}

fn acquire(ms: u64) -> Op {
    Op::Acquire { key: lock(), token: ours(), ttl: ttl(ms), proposal: None, place: None }
}

fn resume(ms: u64) -> Op {
    Op::Resume { key: lock(), token: ours(), ttl: ttl(ms) }
}

fn steal(ms: u64) -> Op {
    Op::Steal { key: lock(), token: ours(), ttl: ttl(ms), any: false }
}

fn renew(ms: u64) -> Op {
    Op::Renew(vec![RenewRequest { key: lock(), token: ours(), ttl: ttl(ms) }])
}

fn release() -> Op {
    release_under(None)
}

/// The release of a lease of several nodes has its number.
fn release_under(number: Option<FencingToken>) -> Op {
    let (entries, leave_tombstone, yield_ms) = (Vec::new(), false, 0);
    Op::Release { key: lock(), token: ours(), entries, leave_tombstone, yield_ms, number }
}

fn force_release() -> Op {
    Op::ForceRelease { key: lock(), token: ours(), any: false }
}

fn inspect() -> Op {
    Op::Inspect { key: lock(), unproved: false }
}

fn number(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

/// The lock is given up, and nobody waits.
fn released(release: Release) -> Reply {
    Reply::Released { release, next: Next::Nobody }
}

fn granted(n: u64) -> Reply {
    Reply::Granted(number(n))
}

fn held(holder: Holder, ms: Option<u64>) -> Held {
    let ttl_left = ms.map_or(TtlLeft::Never, |ms| TtlLeft::Ends(Duration::from_millis(ms)));
    Held { holder, ttl_left }
}

fn alice() -> Holder {
    Holder::from_value(ours().as_bytes())
}

fn bob() -> Holder {
    Holder::from_value(theirs().as_bytes())
}

fn foreign(value: &[u8]) -> Holder {
    Holder::Foreign(value.into())
}

fn hash_holder() -> Holder {
    Holder::ForeignType("hash".into())
}

/// No key.
fn nothing() -> Seen {
    Seen { kind: "none".to_owned(), value: None, members: Vec::new(), pttl: -2 }
}

/// A string with so many milliseconds left, or with [`NO_END`].
fn text(value: impl AsRef<[u8]>, pttl: i64) -> Seen {
    let value = Some(value.as_ref().to_vec());
    Seen { kind: "string".to_owned(), value, pttl, ..nothing() }
}

/// A token of ours.
fn token(token: &Token, pttl: i64) -> Seen {
    text(token.as_bytes(), pttl)
}

/// A number at the fence key.
fn fence(number: u64, pttl: i64) -> Seen {
    text(number.to_string(), pttl)
}

/// Something that is no string.
fn hash(pttl: i64) -> Seen {
    Seen { kind: "hash".to_owned(), pttl, ..nothing() }
}

/// The PTTL of a key without an end.
const NO_END: i64 = -1;
/// The number of a first grant: the clock.
const NOW: u64 = START_US;
/// What the fence key gets above the TTL of the lease.
const DAY: i64 = 86_400_000;
