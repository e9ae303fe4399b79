//! What can happen to a few locks on one node, and random sequences of it.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use tenure_core::{FencingToken, HolderLabel, LockKey, Op, Renewal, Token, Ttl};

use crate::node::Command;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A client of ours asks.
    Ask(Op),
    /// The clock moves.
    Clock(Move),
    /// Somebody else writes at one of the two keys of a lock.
    Foreign(LockKey, Place, Write),
    /// Somebody empties the server.
    Flush,
}

/// How the clock moves.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// By this many microseconds, backward when negative.
    By(i64),
    /// To this many milliseconds after the end of a key, which is still alive at its end.
    ToEnd(LockKey, Place, i64),
    /// To this many milliseconds after the moment when a fence key of [`RENEWED`] is at half.
    ToHalf(LockKey, i64),
    /// To this many microseconds after the one that is the last number.
    ToLastNumber(i64),
}

/// One of the two keys of a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Lock,
    Fence,
}

/// What somebody else does to a key.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// SET, with PX if there is an end.
    Text(Vec<u8>, Option<u64>),
    /// A value of another type, by its name.
    Other(&'static str),
    /// PEXPIRE.
    Expire(u64),
    /// PERSIST.
    Persist,
    /// DEL.
    Delete,
}

impl Write {
    /// The commands that do it.
    pub(crate) fn commands(&self, key: &[u8]) -> Vec<Command> {
        let command = |name: &str, args: &[&[u8]]| {
            let head = [name.as_bytes(), key].into_iter();
            head.chain(args.iter().copied()).map(<[u8]>::to_vec).collect::<Command>()
        };
        match self {
            Self::Text(value, None) => vec![command("SET", &[value])],
            Self::Text(value, Some(ms)) => {
                vec![command("SET", &[value, b"PX", ms.to_string().as_bytes()])]
            }
            Self::Other(name) => {
                let create = match *name {
                    "list" => command("RPUSH", &[b"x"]),
                    "hash" => command("HSET", &[b"x", b"1"]),
                    "set" => command("SADD", &[b"x"]),
                    "zset" => command("ZADD", &[b"1", b"x"]),
                    "stream" => command("XADD", &[b"1-1", b"x", b"1"]),
                    other => panic!("no command for a {other}"),
                };
                vec![command("DEL", &[]), create]
            }
            Self::Expire(ms) => vec![command("PEXPIRE", &[ms.to_string().as_bytes()])],
            Self::Persist => vec![command("PERSIST", &[])],
            Self::Delete => vec![command("DEL", &[])],
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

/// Sequences of steps.
pub(crate) fn sequences() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        14 => op().prop_map(Step::Ask),
        5 => clock().prop_map(Step::Clock),
        4 => foreign(),
        1 => prop_oneof![9 => clock().prop_map(Step::Clock), 1 => Just(Step::Flush)],
    ];
    vec(step, 1..=32)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (lock(), token(), ttl()).prop_map(|(key, token, ttl)| Op::Acquire { key, token, ttl }),
        4 => vec(renewal(), 1..=4).prop_map(Op::Renew),
        2 => (lock(), token()).prop_map(|(key, token)| Op::Release { key, token }),
        1 => (lock(), token(), ttl()).prop_map(|(key, token, ttl)| Op::Resume { key, token, ttl }),
        1 => (lock(), token(), ttl()).prop_map(|(key, token, ttl)| Op::Steal { key, token, ttl }),
        1 => lock().prop_map(|key| Op::ForceRelease { key }),
        1 => lock().prop_map(|key| Op::Inspect { key }),
    ]
}

fn renewal() -> impl Strategy<Value = Renewal> {
    (lock(), token(), ttl()).prop_map(|(key, token, ttl)| Renewal { key, token, ttl })
}

/// Some lock, the first one oftener: most steps should meet each other.
fn lock() -> impl Strategy<Value = LockKey> {
    prop_oneof![2 => Just(locks().remove(0)), 2 => select(locks())]
}

fn tokens() -> Vec<Token> {
    let labels = ["host/1", "", "\u{5907}\u{4efd} 100%"];
    let labels = labels.iter().map(|label| HolderLabel::new(label).unwrap());
    (1..).zip(labels).map(|(random, label)| Token::new(random << 100, &label)).collect()
}

fn token() -> impl Strategy<Value = Token> {
    prop_oneof![2 => Just(tokens().remove(0)), 2 => select(tokens())]
}

fn ttl() -> impl Strategy<Value = Ttl> {
    // Days from the longest, so that no clock stepped back takes a PTTL above 2^53: scripts see
    // those only as doubles.
    let longest = Ttl::MAX_MS - 1_000 * DAY_MS;
    let ms = prop_oneof![
        4 => Just(u64::try_from(RENEWED.as_millis()).unwrap()),
        4 => select(vec![10, 1_000, 29_999, 30_001, 60_000, DAY_MS, 3 * DAY_MS + 1, longest]),
    ];
    ms.prop_map(|ms| Ttl::new(Duration::from_millis(ms)).unwrap())
}

fn clock() -> impl Strategy<Value = Move> {
    const DAY_US: i64 = 86_400_000_000;
    let by = vec![1, 499, 500, 1_000, 1_000_001, DAY_US / 24, DAY_US, 2 * DAY_US];
    let back = vec![-1, -999, -1_000, -29_999_000, -DAY_US / 24, -DAY_US, -5 * DAY_US];
    let place = prop_oneof![3 => Just(Place::Lock), 1 => Just(Place::Fence)];
    prop_oneof![
        3 => select(by).prop_map(Move::By),
        2 => (0..40_000_000_i64).prop_map(Move::By),
        2 => select(back).prop_map(Move::By),
        4 => (lock(), place, -1..=1_i64).prop_map(|(key, place, ms)| Move::ToEnd(key, place, ms)),
        3 => (lock(), -1..=1_i64).prop_map(|(key, ms)| Move::ToHalf(key, ms)),
        1 => (-2..=1_i64).prop_map(Move::ToLastNumber),
    ]
}

fn foreign() -> impl Strategy<Value = Step> {
    let place_and_write = prop_oneof![
        write(lock_values()).prop_map(|write| (Place::Lock, write)),
        write(fence_values()).prop_map(|write| (Place::Fence, write)),
    ];
    (lock(), place_and_write).prop_map(|(key, (place, write))| Step::Foreign(key, place, write))
}

fn write(values: Vec<Vec<u8>>) -> impl Strategy<Value = Write> {
    let ms = prop_oneof![Just(1_u64), Just(30_000), 1..100_000_u64, Just(10 * DAY_MS)];
    let end = (any::<bool>(), ms.clone()).prop_map(|(ends, ms)| ends.then_some(ms));
    prop_oneof![
        6 => (select(values), end).prop_map(|(value, end)| Write::Text(value, end)),
        2 => select(vec!["list", "hash", "set", "zset", "stream"]).prop_map(Write::Other),
        1 => ms.prop_map(Write::Expire),
        1 => Just(Write::Persist),
        1 => Just(Write::Delete),
    ]
}

/// Values of other libraries, one that looks like a token, and our own tokens.
fn lock_values() -> Vec<Vec<u8>> {
    let others: [&[u8]; 5] =
        [b"", b"1", b"\0\xff\r\n", b"0123456789abcdef", b"0123456789ABCDEF0123456789ABCDEF@x"];
    let ours = tokens().into_iter().map(|token| token.as_bytes().to_vec());
    others.map(<[u8]>::to_vec).into_iter().chain(ours).collect()
}

/// Numbers at every edge, twice as many as of what Lua or a lenient parser could take for one.
fn fence_values() -> Vec<Vec<u8>> {
    let last = FencingToken::MAX.get();
    let numbers = [0, 1, last - 2, last - 1, last, last + 1, last + 2, 12_345_678_901_234_567];
    let numbers = numbers.map(|number| number.to_string().into_bytes());
    let others: [&[u8]; 18] = [
        b"",
        b"007",
        b"0000000000000007",
        b"00000000000000007",
        b"-1",
        b"-0",
        b"+5",
        b" 5",
        b"5 ",
        b"5\n",
        b"5\0",
        b"1e3",
        b"0x10",
        b"1.0",
        b"nan",
        b"inf",
        b"x",
        b"\xd9\xa3",
    ];
    let others = others.map(<[u8]>::to_vec);
    numbers.iter().chain(&numbers).chain(&others).cloned().collect()
}

const DAY_MS: u64 = 86_400_000;
