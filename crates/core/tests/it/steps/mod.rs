//! What can happen to a few locks on one node, and random sequences of it.

mod marker;
mod queue;
mod write;

use std::time::Duration;

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use tenure_core::{FencingToken, HolderLabel, LockKey, Op, RenewRequest, Token, Ttl};

pub(crate) use self::marker::MarkerStep;
pub(crate) use self::write::{Scored, Write};
use crate::node::START_US;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A client of ours asks.
    Ask(Op),
    /// Waiters of ours come back: to acquire with the ticket that they got, if they got
    /// one, or to poll by the entry that they joined with.
    Again(Op),
    /// A connection of ours subscribes, or unsubscribes.
    Listen(Listen),
    /// The clock moves.
    Clock(Move),
    /// Somebody else writes at one of the keys of a lock.
    Foreign(LockKey, Part, Write),
    /// Somebody writes at the server's marker, or the identity changes that it names.
    Marker(MarkerStep),
    /// Somebody empties the server.
    Flush,
}

/// What becomes of the subscribers; channels and connections by their index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listen {
    /// A channel has a listener.
    Open(usize),
    /// A channel has none.
    Close(usize),
    /// A connection is lost, with all its channels.
    Cut(usize),
}

/// How the clock moves.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// By this many microseconds, backward when negative.
    By(i64),
    /// To this many milliseconds after the end of a key, which is still alive at its end.
    ToEnd(LockKey, Part, i64),
    /// To this many milliseconds after the moment when a fence key of [`RENEWED`] is at half.
    ToHalf(LockKey, i64),
    /// To this many milliseconds after the moment when the oldest tombstone of a lock is old.
    ToOld(LockKey, i64),
    /// To this many microseconds after the one that is the last number.
    ToLastNumber(i64),
}

/// One of the three keys of a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Lock,
    Fence,
    Queue,
}

impl Part {
    /// The key.
    pub(crate) fn of(self, lock: &LockKey) -> Vec<u8> {
        match self {
            Self::Lock => lock.as_bytes().to_vec(),
            Self::Fence => lock.fence(),
            Self::Queue => lock.queue(),
        }
    }
}

/// The locks: two whose fence keys must not be one, one of odd bytes, one without slot mates.
pub(crate) fn locks() -> Vec<LockKey> {
    let names: [&[u8]; 4] = [b"foo", b"{foo}", b"\0 \r\n\xff{", b"a}b"];
    names.map(|name| LockKey::new(name).unwrap()).to_vec()
}

/// The TTL of every other lease, so that halves and ends are met often.
pub(crate) const RENEWED: Duration = Duration::from_secs(30);

/// Scores from here on are tombstones: this and milliseconds.
pub(crate) const TOMBSTONES: u64 = 8_000_000_000_000_000;

/// How long a tombstone is young.
pub(crate) const TOMBSTONE_MS: u64 = 60_000;

/// Sequences of steps: of all that can happen, or mostly of what happens at one queue.
pub(crate) fn sequences() -> impl Strategy<Value = Vec<Step>> {
    // Boxed: a tree of values has room for all of them, and a test has little stack.
    let step = prop_oneof![
        16 => op().prop_map(Step::Ask).boxed(),
        4 => confirm().prop_map(Step::Ask).boxed(),
        8 => queue::op().boxed(),
        5 => clock().prop_map(Step::Clock).boxed(),
        5 => write::foreign().boxed(),
        6 => checked().prop_map(Step::Ask).boxed(),
        3 => marker::step().boxed(),
        1 => queue::listen().boxed(),
        1 => prop_oneof![9 => clock().prop_map(Step::Clock), 1 => Just(Step::Flush)],
    ];
    prop_oneof![vec(step, 1..=32), vec(queue::step(), 1..=32)]
}

fn op() -> impl Strategy<Value = Op> {
    let proposal = weighted(0.4, number());
    let acquire = (lock(), token(), ttl(), proposal).prop_map(|(key, token, ttl, proposal)| {
        Op::Acquire { key, token, ttl, proposal, place: None }
    });
    prop_oneof![
        4 => acquire,
        4 => vec(renewal(), 1..=4).prop_map(Op::Renew),
        2 => queue::release(),
        1 => (lock(), token(), ttl()).prop_map(|(key, token, ttl)| Op::Resume { key, token, ttl }),
        1 => (lock(), token(), ttl(), any::<bool>())
            .prop_map(|(key, token, ttl, any)| Op::Steal { key, token, ttl, any }),
        1 => queue::force_release(lock()),
        1 => lock().prop_map(|key| Op::Inspect { key, unproved: false }),
        1 => queue::poll(),
    ]
}

/// An op that is checked against the marker.
fn checked() -> impl Strategy<Value = Op> {
    let op = prop_oneof![4 => op(), 1 => confirm()];
    (op, marker::check()).prop_map(|(op, check)| op.checked(check))
}

fn confirm() -> impl Strategy<Value = Op> {
    // One lock and one token oftener: a fault is met only under a lock that is held.
    let (key, by) = (locks().remove(0), tokens().remove(0));
    let whose = prop_oneof![(lock(), token()), Just((key, by))];
    // No grant has the number 0.
    let number = number().prop_map(|number| FencingToken::new(number.get().max(1)).unwrap());
    let confirm = (whose, ttl(), number).prop_map(|((key, token), ttl, number)| Op::Confirm {
        key,
        token,
        ttl,
        number,
    });
    prop_oneof![9 => confirm, 1 => Just(Op::Clock)]
}

fn renewal() -> impl Strategy<Value = RenewRequest> {
    (lock(), token(), ttl()).prop_map(|(key, token, ttl)| RenewRequest { key, token, ttl })
}

/// Some lock, the first one oftener: most steps should meet each other.
fn lock() -> impl Strategy<Value = LockKey> {
    prop_oneof![2 => Just(locks().remove(0)), 2 => select(locks())]
}

fn tokens() -> Vec<Token> {
    let labels = ["host/1", "", "\u{5907}\u{4efd} 100%", "host/2"];
    let labels = labels.iter().map(|label| HolderLabel::new(label).unwrap());
    (1..).zip(labels).map(|(random, label)| Token::new(random << 100, &label)).collect()
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![2 => Just(tokens().remove(0)), 2 => select(tokens())]
}

fn ttl() -> impl Strategy<Value = Ttl> + Clone {
    // Days from the longest, so that no clock stepped back takes a PTTL above 2^53: scripts see
    // those only as doubles.
    let longest = Ttl::MAX_MS - 1_000 * DAY_MS;
    let ms = prop_oneof![
        4 => Just(u64::try_from(RENEWED.as_millis()).unwrap()),
        4 => select(vec![10, 1_000, 29_999, 30_001, 60_000, DAY_MS, 3 * DAY_MS + 1, longest]),
    ];
    ms.prop_map(|ms| Ttl::new(Duration::from_millis(ms)).unwrap())
}

/// Numbers around the clock at the beginning, at both ends, and at what may be proposed at most and
/// at least.
fn number() -> impl Strategy<Value = FencingToken> + Clone {
    const HOUR_US: u64 = 3_600_000_000;
    let last = FencingToken::MAX.get();
    let number = prop_oneof![
        4 => START_US - 1..START_US + 3,
        2 => START_US..START_US + 40_000_000,
        1 => START_US + HOUR_US - 1..START_US + HOUR_US + 2,
        1 => START_US - HOUR_US - 1..START_US - HOUR_US + 2,
        1 => select(vec![0, 1, START_US + 2 * HOUR_US, last - 1, last]),
    ];
    number.prop_map(|number| FencingToken::new(number).unwrap())
}

fn clock() -> impl Strategy<Value = Move> {
    const DAY_US: i64 = 86_400_000_000;
    let by = vec![1, 499, 500, 1_000, 1_000_001, DAY_US / 24, DAY_US, 2 * DAY_US];
    let back = vec![-1, -999, -1_000, -29_999_000, -DAY_US / 24, -DAY_US, -5 * DAY_US];
    let part = prop_oneof![3 => Just(Part::Lock), 1 => Just(Part::Fence), 2 => Just(Part::Queue)];
    prop_oneof![
        3 => select(by).prop_map(Move::By),
        2 => (0..40_000_000_i64).prop_map(Move::By),
        2 => select(back).prop_map(Move::By),
        5 => (lock(), part, -1..=1_i64).prop_map(|(key, part, ms)| Move::ToEnd(key, part, ms)),
        2 => (lock(), -1..=1_i64).prop_map(|(key, ms)| Move::ToOld(key, ms)),
        5 => (lock(), -1..=1_i64).prop_map(|(key, ms)| Move::ToHalf(key, ms)),
        1 => (-2..=1_i64).prop_map(Move::ToLastNumber),
    ]
}

const DAY_MS: u64 = 86_400_000;
