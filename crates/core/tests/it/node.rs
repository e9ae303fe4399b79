//! A real server with the scripts loaded, whose clock stands until a test moves it.

use std::collections::BTreeMap;
use std::fmt;

use tenure_core::script::{self, Answer, Call, Script};
use tenure_core::{LockKey, NodeTime, Op, Reply, ServerIdentity};
use tenure_testkit::{Raw, Server, ServerKind, Value};

/// The time on the clock of a fresh node, in µs: not a whole second, not even a whole millisecond.
pub(crate) const START_US: u64 = 1_760_000_000_123_456;

/// One command.
pub(crate) type Command = Vec<Vec<u8>>;

/// What stands at one key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// What TYPE says; `none` without a key.
    pub(crate) kind: String,
    /// What GET says, of a string.
    pub(crate) value: Option<Vec<u8>>,
    /// What ZRANGE says, of a sorted set at the queue's key.
    pub(crate) members: Vec<(u64, Vec<u8>)>,
    /// What PTTL says: -1 without an end, -2 without a key.
    pub(crate) pttl: i64,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_ref().map(|value| value.escape_ascii().to_string());
        write!(f, "{} {value:?}, {} ms left", self.kind, self.pttl)?;
        for (score, member) in &self.members {
            write!(f, "\n    {score} {:?}", member.escape_ascii().to_string())?;
        }
        Ok(())
    }
}

/// A server, and a connection to it.
pub(crate) struct Node {
    pub(crate) server: Server,
    raw: Raw,
    shas: BTreeMap<&'static str, String>,
    request: u64,
}

impl Node {
    /// A server with the scripts as they are.
    pub(crate) fn start(kind: ServerKind) -> Self {
        let server = Server::builder(kind).shim().start();
        let mut node = Self { raw: server.raw(), server, shas: BTreeMap::new(), request: 0 };
        node.load(|script| script.text.to_owned());
        for script in script::ALL {
            assert_eq!(node.shas[script.name], script.sha1, "{kind}: {}", script.name);
        }
        node.reset();
        node
    }

    /// Loads scripts with other texts: [`Node::ask`] runs those from now on.
    pub(crate) fn load(&mut self, text_of: impl Fn(&Script) -> String) {
        for script in script::ALL {
            let sha = self.raw.cmd(&["SCRIPT", "LOAD", &text_of(script)]);
            let sha = sha.text().unwrap_or_else(|| panic!("{}: {sha:?}", script.name));
            self.shas.insert(script.name, sha.to_owned());
        }
    }

    /// Empties the server and puts its clock back.
    pub(crate) fn reset(&mut self) {
        self.set_clock(START_US);
        assert!(self.cmd(&["FLUSHALL"]).is_ok());
    }

    /// What the server says of itself.
    pub(crate) fn identity(&mut self) -> ServerIdentity {
        let info = self.cmd(&["INFO"]);
        let field = |name: &str| {
            let line = info.text().unwrap().lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        ServerIdentity {
            replid: field("master_replid:"),
            has_second_replid: field("master_replid2:").bytes().any(|b| b != b'0'),
            run_id: field("run_id:"),
        }
    }

    /// Puts the clock to a time, in µs.
    pub(crate) fn set_clock(&self, at_us: u64) {
        self.server.clock().freeze_at_us(i64::try_from(at_us).unwrap());
    }

    /// What the clock shows.
    pub(crate) fn now(&self) -> NodeTime {
        let wall_us = u64::try_from(self.server.clock().now_us()).unwrap();
        NodeTime { ttl_ms: wall_us / 1_000, wall_us }
    }

    /// Sends one command of no script.
    pub(crate) fn cmd<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.raw.cmd(args)
    }

    /// Sends the commands in one write, and receives their replies.
    pub(crate) fn pipeline(&mut self, commands: &[Command]) -> Vec<Value> {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend(format!("*{}\r\n", command.len()).bytes());
            for arg in command {
                bytes.extend(format!("${}\r\n", arg.len()).bytes());
                bytes.extend(arg);
                bytes.extend(b"\r\n");
            }
        }
        self.raw.send_bytes(&bytes);
        commands.iter().map(|_| self.raw.receive()).collect()
    }

    /// Asks for one op; the error is what the server said instead of a reply to it.
    pub(crate) fn ask(&mut self, op: &Op) -> Result<Reply, String> {
        let (request, command) = self.request(op);
        let reply = self.pipeline(&[command]).remove(0);
        read(op, request, reply)
    }

    /// The command of an op, and the number of the request.
    pub(crate) fn request(&mut self, op: &Op) -> (u64, Command) {
        self.request += 1;
        (self.request, self.command(&Call::new(op, self.request)))
    }

    /// The command of a call.
    pub(crate) fn command(&self, call: &Call) -> Command {
        let head = ["EVALSHA", &self.shas[call.script.name], &call.keys.len().to_string()];
        let head = head.map(|word| word.as_bytes().to_vec());
        head.into_iter().chain(call.keys.clone()).chain(call.args.clone()).collect()
    }

    /// What stands at the lock and at the fence key of each lock, and how many keys there are.
    pub(crate) fn look(&mut self, locks: &[LockKey]) -> (Vec<Seen>, i64) {
        let (seen, size) = self.look_at_all(locks);
        let of_two = |three: &[Seen]| [three[0].clone(), three[1].clone()];
        (seen.chunks(3).flat_map(of_two).collect(), size)
    }

    /// What stands at the three keys of each lock, and how many keys there are.
    pub(crate) fn look_at_all(&mut self, locks: &[LockKey]) -> (Vec<Seen>, i64) {
        let replies = self.pipeline(&look(locks));
        seen(&replies)
    }
}

/// The commands whose replies [`seen`] reads.
pub(crate) fn look(locks: &[LockKey]) -> Vec<Command> {
    let three = |lock: &LockKey| [lock.as_bytes().to_vec(), lock.fence(), lock.queue()];
    let keys: Command = locks.iter().flat_map(three).collect();
    // Each key is looked up before the count, so that none is counted after its end. MGET and not
    // GET: it says nil of other types.
    let mut commands = vec![[vec![b"MGET".to_vec()], keys.clone()].concat()];
    for key in &keys {
        commands.push(vec![b"TYPE".to_vec(), key.clone()]);
        commands.push(vec![b"PTTL".to_vec(), key.clone()]);
    }
    for queue in keys.into_iter().skip(2).step_by(3) {
        let [zrange, first, last] = ["ZRANGE", "0", "-1"].map(|word| word.as_bytes().to_vec());
        commands.push(vec![zrange, queue, first, last, b"WITHSCORES".to_vec()]);
    }
    commands.push(vec![b"DBSIZE".to_vec()]);
    commands
}

/// What the replies to [`look`] say.
pub(crate) fn seen(replies: &[Value]) -> (Vec<Seen>, i64) {
    let [values, keys @ .., size] = replies else { panic!("too few replies: {replies:?}") };
    let values = values.array();
    let (keys, queues) = keys.split_at(2 * values.len());
    let seen = values.iter().zip(keys.chunks(2)).zip(0..).map(|((value, key), index)| Seen {
        kind: key[0].text().unwrap().to_owned(),
        value: value.bytes().map(<[u8]>::to_vec),
        members: if index % 3 == 2 { members(&queues[index / 3]) } else { Vec::new() },
        pttl: key[1].int(),
    });
    (seen.collect(), size.int())
}

/// Members with their scores; none of what is no sorted set.
fn members(reply: &Value) -> Vec<(u64, Vec<u8>)> {
    if reply.error().is_some() {
        return Vec::new();
    }
    let member = |pair: &[Value]| {
        (pair[1].text().unwrap().parse().unwrap(), pair[0].bytes().unwrap().to_vec())
    };
    reply.array().chunks(2).map(member).collect()
}

/// Reads the reply to a request.
pub(crate) fn read(op: &Op, request: u64, reply: Value) -> Result<Reply, String> {
    if let Value::Error(words) = reply {
        return Err(words);
    }
    let shown = format!("{reply:?}");
    script::read(op, request, answer(reply)).map_err(|misread| format!("{misread}: {shown}"))
}

fn answer(value: Value) -> Answer {
    match value {
        Value::Int(number) => Answer::Int(number),
        Value::Bulk(bytes) => Answer::Bytes(bytes),
        Value::Status(text) => Answer::Bytes(text.into_bytes()),
        Value::Array(items) => Answer::Array(items.into_iter().map(answer).collect()),
        Value::Nil | Value::Error(_) => Answer::Other,
    }
}
