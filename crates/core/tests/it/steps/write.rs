//! What somebody else writes at the keys of a lock.

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use tenure_core::{FencingToken, Ttl, fence_ttl};

use super::{DAY_MS, Part, RENEWED, Step, lock, queue, tokens};
use crate::node::Command;

/// What somebody else does to a key.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// SET, with PX if there is an end.
    Text(Vec<u8>, Option<u64>),
    /// A value of another type, by its name.
    Other(&'static str),
    /// A sorted set of these members alone.
    Put(Vec<Scored>),
    /// ZADD, where there is a sorted set or nothing.
    Add(Vec<Scored>),
    /// PEXPIRE.
    Expire(u64),
    /// PERSIST.
    Persist,
    /// DEL.
    Delete,
}

/// A member of a sorted set, with its score.
#[derive(Clone)]
pub(crate) struct Scored(pub(crate) u64, pub(crate) Vec<u8>);

impl std::fmt::Debug for Scored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} \"{}\"", self.0, self.1.escape_ascii())
    }
}

impl Write {
    /// The commands that do it.
    pub(crate) fn commands(&self, key: &[u8]) -> Vec<Command> {
        let command = |name: &str, args: &[&[u8]]| {
            let head = [name.as_bytes(), key].into_iter();
            head.chain(args.iter().copied()).map(<[u8]>::to_vec).collect::<Command>()
        };
        let zadd = |members: &[Scored]| {
            let pair = |Scored(score, member): &Scored| [score.to_string().into(), member.clone()];
            command("ZADD", &[]).into_iter().chain(members.iter().flat_map(pair)).collect()
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
                    "stream" => command("XADD", &[b"1-1", b"x", b"1"]),
                    other => panic!("no command for a {other}"),
                };
                vec![command("DEL", &[]), create]
            }
            Self::Put(members) => vec![command("DEL", &[]), zadd(members)],
            Self::Add(members) => vec![zadd(members)],
            Self::Expire(ms) => vec![command("PEXPIRE", &[ms.to_string().as_bytes()])],
            Self::Persist => vec![command("PERSIST", &[])],
            Self::Delete => vec![command("DEL", &[])],
        }
    }
}

/// Something that somebody else writes.
pub(super) fn foreign() -> impl Strategy<Value = Step> {
    let part_and_write = prop_oneof![
        3 => write(lock_values()).prop_map(|write| (Part::Lock, write)),
        3 => write(fence_values()).prop_map(|write| (Part::Fence, write)),
        3 => queue::write().boxed().prop_map(|write| (Part::Queue, write)),
        1 => write(lock_values()).prop_map(|write| (Part::Queue, write)),
    ];
    (lock(), part_and_write).prop_map(|(key, (part, write))| Step::Foreign(key, part, write))
}

fn write(values: Vec<Vec<u8>>) -> impl Strategy<Value = Write> {
    // One at which a fence key is just at the half that a renewal leaves alone.
    let half = fence_ttl(Ttl::new(RENEWED).unwrap()) / 2;
    let ms = prop_oneof![Just(1_u64), Just(30_000), 1..100_000_u64, Just(half), Just(10 * DAY_MS)];
    let end = (any::<bool>(), ms.clone()).prop_map(|(ends, ms)| ends.then_some(ms));
    prop_oneof![
        6 => (select(values), end).prop_map(|(value, end)| Write::Text(value, end)),
        2 => prop_oneof![
            4 => select(vec!["list", "hash", "set", "stream"]).prop_map(Write::Other),
            1 => Just(Write::Put(vec![Scored(1, b"x".to_vec())])),
        ],
        1 => ms.prop_map(Write::Expire),
        1 => Just(Write::Persist),
        1 => Just(Write::Delete),
    ]
}

/// Values of other libraries, some that look like a token, our own tokens, and data: long values
/// at the bounds of what is read, of which one begins with a token of ours.
fn lock_values() -> Vec<Vec<u8>> {
    let others: [&[u8]; 9] = [
        b"",
        b"1",
        b"\0\xff\r\n",
        b"0123456789abcdef",
        b"0123456789ABCDEF0123456789ABCDEF@x",
        b"{\"a\":1}",
        b"[1]",
        b"<a>",
        b"a{b}",
    ];
    let ours = || tokens().into_iter().map(|token| token.as_bytes().to_vec());
    let long = [255, 256, 257, 1_000].map(|length| vec![b'x'; length]);
    let begins_as_ours = ours().next().map(|token| [token, vec![b'y'; 300]].concat());
    let others = others.map(<[u8]>::to_vec).into_iter().chain(long).chain(begins_as_ours);
    others.chain(ours()).collect()
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
