//! What happens at the queue of a lock.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use tenure_core::{Channel, Entry, LockKey, Op, Place, Poll, Ticket, Token, Ttl};

use super::{
    Listen, Move, Part, Scored, Step, TOMBSTONE_MS, TOMBSTONES, Write, locks, number, tokens, ttl,
    write,
};
use crate::listeners::{LINES, channels, connections};
use crate::node::START_US;

/// What happens while many wait for one lock.
pub(super) fn step() -> impl Strategy<Value = Step> {
    let by = prop_oneof![3 => 0..2_000_000_i64, 1 => -1_000_000..0_i64];
    let part = prop_oneof![3 => Just(Part::Lock), 1 => Just(Part::Queue)];
    let clock = prop_oneof![
        2 => by.prop_map(Move::By),
        3 => (lock(), part, -1..=1_i64).prop_map(|(key, part, ms)| Move::ToEnd(key, part, ms)),
        1 => (lock(), -1..=1_i64).prop_map(|(key, ms)| Move::ToOld(key, ms)),
    ];
    let foreign = (lock(), write()).prop_map(|(key, write)| Step::Foreign(key, Part::Queue, write));
    prop_oneof![
        20 => op().boxed(),
        3 => clock.prop_map(Step::Clock).boxed(),
        3 => foreign.boxed(),
        1 => write::foreign().boxed(),
        2 => listen().boxed(),
    ]
}

/// Ops that meet at a queue.
pub(super) fn op() -> impl Strategy<Value = Step> {
    let hold = (lock(), token(), ttl());
    let ask = prop_oneof![
        10 => join().boxed(),
        4 => release().boxed(),
        2 => (hold.clone(), any::<bool>())
            .prop_map(|((key, token, ttl), any)| Op::Steal { key, token, ttl, any }),
        3 => hold.prop_map(|(key, token, ttl)| Op::Acquire {
            key,
            token,
            ttl,
            proposal: None,
            place: None,
        }),
        1 => force_release(lock()).boxed(),
        1 => lock().prop_map(|key| Op::Inspect { key, unproved: false }),
        1 => poll().boxed(),
    ];
    let again = prop_oneof![1 => join().boxed(), 1 => poll().boxed()];
    prop_oneof![5 => ask.prop_map(Step::Ask), 2 => again.prop_map(Step::Again)]
}

pub(super) fn force_release(lock: impl Strategy<Value = LockKey>) -> impl Strategy<Value = Op> {
    (lock, token(), any::<bool>()).prop_map(|(key, token, any)| Op::ForceRelease {
        key,
        token,
        any,
    })
}

/// The first lock, nearly always, or the second: some ops are about two.
fn lock() -> impl Strategy<Value = LockKey> + Clone {
    prop_oneof![
        8 => Just(locks().remove(0)),
        2 => Just(locks().remove(1)),
        1 => select(locks())
    ]
}

fn token() -> impl Strategy<Value = Token> + Clone {
    select(tokens())
}

fn join() -> impl Strategy<Value = Op> {
    (lock(), token(), ttl(), weighted(0.1, number()), place()).prop_map(
        |(key, token, ttl, proposal, place)| Op::Acquire {
            key,
            token,
            ttl,
            proposal,
            place: Some(place),
        },
    )
}

/// A poll for a few waiters, the same one among them twice now and then.
pub(super) fn poll() -> impl Strategy<Value = Op> {
    let poll =
        (lock(), token(), entry()).prop_map(|(key, token, entry)| Poll { key, token, entry });
    vec(poll, 1..=4).prop_map(Op::Poll)
}

/// A release of a token with all the entries that it may have, or with few of them.
pub(super) fn release() -> impl Strategy<Value = Op> {
    let leave_tombstone = prop_oneof![4 => Just(false), 1 => Just(true)];
    let yield_ms = prop_oneof![4 => Just(0), 1 => Just(300)];
    (lock(), token(), vec(entry(), 0..=3), leave_tombstone, yield_ms, weighted(0.3, number()))
        .prop_map(|(key, token, entries, leave_tombstone, yield_ms, number)| Op::Release {
            key,
            token,
            entries,
            leave_tombstone,
            yield_ms,
            number,
        })
}

fn place() -> impl Strategy<Value = Place> {
    (entry(), weighted(0.3, ticket()), weighted(0.5, entry()), weighted(0.2, channel())).prop_map(
        |(entry, ticket, previous, suspect)| Place {
            entry,
            ticket: ticket.and_then(Ticket::new),
            previous,
            suspect,
        },
    )
}

fn entry() -> impl Strategy<Value = Entry> {
    // Few different ones, so that a waiter finds its earlier entry.
    let grant_ttl = prop_oneof![6 => Just(1_000), 1 => Just(10), 1 => Just(5_000)];
    let channel = prop_oneof![2 => select(connections()[..2].to_vec()), 3 => channel()];
    (channel, grant_ttl).prop_map(|(channel, ms)| Entry {
        channel,
        grant_ttl: Ttl::new(Duration::from_millis(ms)).unwrap(),
    })
}

/// Some connection's channel: of those at first the first four are listened to.
fn channel() -> impl Strategy<Value = Channel> {
    prop_oneof![2 => Just(connections().remove(0)), 3 => select(connections())]
}

/// Tickets as they come when the clock stands, and some that only others would write.
fn ticket() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => START_US - 3..START_US + 8,
        1 => select(vec![0, 1, 5_000_000_000_000_000, 7_000_000_000_000_000]),
        1 => TOMBSTONES - 2..TOMBSTONES,
    ]
}

/// The subscriptions change.
pub(super) fn listen() -> impl Strategy<Value = Step> {
    let index = 0..channels().len();
    let listen = prop_oneof![
        4 => index.clone().prop_map(Listen::Open),
        3 => index.prop_map(Listen::Close),
        1 => (0..LINES).prop_map(Listen::Cut),
    ];
    listen.prop_map(Step::Listen)
}

/// What somebody else writes at the queue's key, that polls like a queue.
pub(super) fn write() -> impl Strategy<Value = Write> {
    let member = (score(), member()).prop_map(|(score, member)| Scored(score, member));
    let buried = prop_oneof![3 => Just(&b""[..]), 2 => Just(&b" released"[..])];
    let tombstone = (tombstone_score(), token(), buried)
        .prop_map(|(score, token, end)| Scored(score, [b"!", token.as_bytes(), end].concat()));
    let members = prop_oneof![4 => vec(member, 1..=4), 4 => vec(tombstone, 1..=3)];
    let end = select(vec![1_u64, 1_000, 90_000, 91_000]);
    prop_oneof![
        9 => (members, 0..4).prop_map(|(members, put)| match put {
            0 => Write::Put(members),
            _ => Write::Add(members),
        }),
        6 => crowd(),
        1 => end.prop_map(Write::Expire),
        1 => Just(Write::Persist),
        1 => Just(Write::Delete),
    ]
}

/// Dead entries, a few less and a few more than are polled at: before all, or behind the first.
fn crowd() -> impl Strategy<Value = Write> {
    let counts = select(vec![1, 15, 16, 17, 63, 64, 65, 70, 70, 130]);
    (counts, select(vec![START_US - 500, START_US + 1])).prop_map(|(count, least)| {
        let scored = |i| Scored(least + i, format!("x{i}@ tenure:dead 9").into());
        Write::Add((0..count).map(scored).collect())
    })
}

fn score() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => START_US - 3..START_US + 8,
        1 => select(vec![0, 1, 5_000_000_000_000_000, 7_000_000_000_000_000]),
        2 => TOMBSTONES - 2..TOMBSTONES + 1,
        2 => tombstone_score(),
    ]
}

fn tombstone_score() -> impl Strategy<Value = u64> {
    let now = TOMBSTONES + START_US / 1_000;
    let old = now - TOMBSTONE_MS;
    prop_oneof![
        4 => old - 1..old + 2,
        2 => now - 1..now + 2,
        1 => select(vec![TOMBSTONES, 1 << 53]),
    ]
}

/// What our clients write, what they would not, and entries of nobody's token.
fn member() -> impl Strategy<Value = Vec<u8>> {
    let ours = (token(), entry()).prop_map(|(token, entry)| entry.member(&token));
    let strangers = (select(vec!["x", "!x", "~"]), channel(), select(vec!["1", "1000", MAX]))
        .prop_map(|(token, channel, grant_ttl)| format!("{token} {channel} {grant_ttl}").into());
    prop_oneof![2 => ours, 2 => strangers, 3 => select(malformed())]
}

/// Members that no client of ours writes, but for one thing such as ours do.
fn malformed() -> Vec<Vec<u8>> {
    let channel = connections()[0].to_string();
    let grant_ttls =
        ["", "0", "05", "1x", "-1", "1e3", "+5", "5 ", " 5", "5\n", "5.0", "5 5", TOO_LONG];
    let mut malformed: Vec<Vec<u8>> =
        grant_ttls.iter().map(|grant_ttl| format!("a {channel} {grant_ttl}").into()).collect();
    for token in ["", " a", "a a", "\u{e9}", "a\0", "a\t", "\x7f"] {
        malformed.push(format!("{token} {channel} 5").into());
    }
    malformed.push([b"\xff ", channel.as_bytes(), b" 5"].concat());
    for other in ["", "x", "!", "a b", "5"] {
        malformed.push(other.into());
    }
    malformed.extend(tokens().iter().map(|token| token.as_bytes().to_vec()));
    malformed
}

/// The longest provisional grant that is one, and the shortest that is too long.
const MAX: &str = "999999999999999";
const TOO_LONG: &str = "1000000000000000";
