//! The sides: the same work done in different ways.

use std::time::Duration;

use redis::{Connection, Value};
use tenure_core::{
    HolderLabel, LockKey, Op, Release, Reply, Token, Ttl,
    script::{self, Answer, Call},
};

use crate::{Trouble, options::BenchOptions, series::serve, server::connect};

/// One way to acquire and release a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CycleSide {
    /// `SET NX PX` and a compare-and-delete script: what the recipes do, without a number.
    Raw,
    /// The same once more: how far apart two equal sides come out.
    Control,
    /// tenure's scripts over the same plain connection, without an engine.
    Scripts,
    /// `tenure::blocking`.
    Blocking,
    /// `tenure` on a single-threaded tokio runtime.
    Tokio,
}

impl CycleSide {
    pub(super) const ALL: [Self; 5] =
        [Self::Raw, Self::Control, Self::Scripts, Self::Blocking, Self::Tokio];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Control => "control",
            Self::Scripts => "scripts",
            Self::Blocking => "tenure",
            Self::Tokio => "async",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.name() == name)
    }
}

/// The process of one side.
pub(crate) fn side(options: &mut BenchOptions) -> Result<(), Trouble> {
    let name: String = options.needed("name")?;
    let url: String = options.needed("server")?;
    let key: String = options.needed("key")?;
    match CycleSide::named(&name).ok_or("no such side")? {
        CycleSide::Raw | CycleSide::Control => serve(RawCycle::new(&url, key)?.cycle()),
        CycleSide::Scripts => serve(Scripts::new(&url, &key)?.cycle()),
        CycleSide::Blocking => {
            let lock = tenure::blocking::Client::connect(&url)?.lock(&key);
            serve(move || Ok(lock.acquire()?.release()?))
        }
        CycleSide::Tokio => {
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            let lock = tenure::Client::connect(&url)?.lock(&key);
            serve(move || runtime.block_on(async { Ok(lock.acquire().await?.release().await?) }))
        }
    }
}

/// The TTL of every side: the library's default.
const TTL_MS: u64 = 10_000;

struct RawCycle {
    connection: Connection,
    key: String,
    delete: String,
}

impl RawCycle {
    fn new(url: &str, key: String) -> Result<Self, Trouble> {
        let mut connection = connect(url)?;
        let delete = redis::cmd("SCRIPT").arg("LOAD").arg(DELETE).query(&mut connection)?;
        Ok(Self { connection, key, delete })
    }

    fn cycle(mut self) -> impl FnMut() -> Result<(), Trouble> {
        let mut count = 0_u128;
        move || {
            count += 1;
            let token = format!("{count:032x}@bench");
            let mut set = redis::cmd("SET");
            set.arg(&self.key).arg(&token).arg("NX").arg("PX").arg(TTL_MS);
            let set: Option<String> = set.query(&mut self.connection)?;
            set.ok_or("the key was not free")?;
            let mut delete = redis::cmd("EVALSHA");
            delete.arg(&self.delete).arg(1).arg(&self.key).arg(&token);
            let deleted: i64 = delete.query(&mut self.connection)?;
            if deleted == 1 { Ok(()) } else { Err("the key was gone".into()) }
        }
    }
}

/// The compare-and-delete that every recipe has.
pub(crate) const DELETE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then \
                      return redis.call('del', KEYS[1]) else return 0 end";

struct Scripts {
    connection: Connection,
    key: LockKey,
    ttl: Ttl,
}

impl Scripts {
    fn new(url: &str, key: &str) -> Result<Self, Trouble> {
        let mut connection = connect(url)?;
        for script in script::ALL {
            let load = redis::cmd("SCRIPT").arg("LOAD").arg(script.text).to_owned();
            let _sha1: String = load.query(&mut connection)?;
        }
        Ok(Self {
            connection,
            key: LockKey::new(key)?,
            ttl: Ttl::new(Duration::from_millis(TTL_MS))?,
        })
    }

    fn cycle(mut self) -> impl FnMut() -> Result<(), Trouble> {
        let mut count = 0;
        move || {
            count += 1;
            let token = Token::new(u128::from(count), &HolderLabel::new("bench")?);
            let (key, ttl) = (self.key.clone(), self.ttl);
            let acquire = Op::Acquire {
                key: key.clone(),
                token: token.clone(),
                ttl,
                proposal: None,
                place: None,
            };
            let Reply::Granted(_) = self.call(&acquire, 2 * count)? else {
                return Err("the key was not free".into());
            };
            let release = Op::Release {
                key,
                token,
                entries: Vec::new(),
                leave_tombstone: false,
                yield_ms: 0,
                number: None,
            };
            match self.call(&release, 2 * count + 1)? {
                Reply::Released { release: Release::Released(_), .. } => Ok(()),
                other => Err(format!("the release was answered by {other:?}").into()),
            }
        }
    }

    fn call(&mut self, op: &Op, request: u64) -> Result<Reply, Trouble> {
        let call = Call::new(op, request);
        let mut command = redis::cmd("EVALSHA");
        command.arg(call.script.sha1).arg(call.keys.len());
        for part in call.keys.iter().chain(&call.args) {
            command.arg(part);
        }
        let value: Value = command.query(&mut self.connection)?;
        Ok(script::read(op, request, answer(value))?)
    }
}

fn answer(value: Value) -> Answer {
    match value {
        Value::Int(number) => Answer::Int(number),
        Value::BulkString(bytes) => Answer::Bytes(bytes),
        Value::SimpleString(text) => Answer::Bytes(text.into_bytes()),
        Value::Array(values) => Answer::Array(values.into_iter().map(answer).collect()),
        _ => Answer::Other,
    }
}
