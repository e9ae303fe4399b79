//! The meaning of each op on one key, in plain Rust.

use std::time::Duration;

use crate::{
    FenceFault, FencingToken, Held, Holder, Inspection, Op, Release, Renewal, RenewalAnswer, Reply,
    Token, Ttl, TtlLeft, fence_ttl, next_number,
};

/// A node's two clocks, as they stand during one op.
///
/// On a server both are the wall clock; an embedded store counts TTLs on a clock that cannot be
/// set, and numbers on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a node has these two clocks")]
pub struct NodeTime {
    /// The clock that TTLs run on, in milliseconds.
    pub ttl_ms: u64,
    /// The wall clock, in microseconds since the epoch.
    pub wall_us: u64,
}

/// A value at a key, with its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a value and its end")]
pub struct Stored {
    /// The value.
    pub value: Value,
    /// When it ends, on the TTL clock; alive while `now <= end`, as on a server.
    pub ends_ms: Option<u64>,
}

/// What can stand at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a string or not")]
pub enum Value {
    /// A string.
    Bytes(Vec<u8>),
    /// Anything else, by the name of its type.
    OtherType(String),
}

/// The state of one lock on one node: its key and its fence key.
///
/// This is the reference: the scripts are tested to answer exactly as it does, and the embedded
/// store runs it. Values of any kind may stand at either key, since others write there too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a lock has these two keys")]
pub struct Row {
    /// What stands at the lock's key.
    pub lock: Option<Stored>,
    /// What stands at the fence key.
    pub fence: Option<Stored>,
}

impl Row {
    /// Drops what has ended. A server does the same before each command.
    pub fn expire(&mut self, at: NodeTime) {
        let alive = |stored: &mut Stored| stored.ends_ms.is_none_or(|ends| at.ttl_ms <= ends);
        self.lock.take_if(|stored| !alive(stored));
        self.fence.take_if(|stored| !alive(stored));
    }

    /// Whether nothing is stored.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lock.is_none() && self.fence.is_none()
    }

    /// Carries out one op on this key. Which key it is is the caller's business.
    pub fn apply(&mut self, at: NodeTime, op: &Op) -> Reply {
        self.expire(at);
        match op {
            Op::Acquire { token, ttl, .. } => self.acquire(at, token, *ttl),
            Op::Resume { token, ttl, .. } => self.resume(at, token, *ttl),
            Op::Steal { token, ttl, .. } => self.grant(at, token, *ttl),
            Op::Release { token, .. } => Reply::Released(self.release(token)),
            Op::ForceRelease { .. } => Reply::Released(self.force_release()),
            Op::Inspect { .. } => Reply::Inspected(self.inspect(at)),
            Op::Renew(leases) => {
                Reply::Renewed(leases.iter().map(|lease| self.renew(at, lease)).collect())
            }
        }
    }

    /// Raises the TTL, never lowers it, if the token holds the lock. Never creates a key.
    pub fn renew(&mut self, at: NodeTime, lease: &Renewal) -> RenewalAnswer {
        self.expire(at);
        match &self.lock {
            None => RenewalAnswer::Gone,
            Some(stored) if holds(stored, &lease.token) => {
                raise(self.lock.as_mut(), at, lease.ttl.as_millis());
                // Half of its life is soon enough, and saves most renewals the write.
                let fence_ttl = fence_ttl(lease.ttl);
                if 2 * left(self.fence.as_ref(), at) < fence_ttl {
                    raise(self.fence.as_mut(), at, fence_ttl);
                }
                RenewalAnswer::Renewed
            }
            Some(stored) => RenewalAnswer::Other(holder(stored)),
        }
    }

    /// Grants the lock if it is free; raises the TTL, never lowers it, if the token holds it.
    fn acquire(&mut self, at: NodeTime, token: &Token, ttl: Ttl) -> Reply {
        match &self.lock {
            None => self.grant(at, token, ttl),
            Some(stored) if holds(stored, token) => match self.last_number() {
                Ok(Some(number)) => {
                    raise(self.lock.as_mut(), at, ttl.as_millis());
                    Reply::Granted(number)
                }
                // The counter was deleted under the holder: a new number is the only true one.
                Ok(None) => {
                    let ends = self.lock.as_ref().and_then(|stored| stored.ends_ms);
                    let reply = self.grant(at, token, ttl);
                    // The grant must not shorten what the token already had.
                    if let (Some(lock), Some(ends)) = (self.lock.as_mut(), ends) {
                        lock.ends_ms = lock.ends_ms.max(Some(ends));
                    }
                    reply
                }
                Err(fault) => Reply::Faulty(fault),
            },
            Some(stored) => Reply::Held(held(stored, at)),
        }
    }

    /// Raises the TTL, never lowers it, if the token holds the lock. Never creates a key.
    fn resume(&mut self, at: NodeTime, token: &Token, ttl: Ttl) -> Reply {
        if self.lock.is_some() { self.acquire(at, token, ttl) } else { Reply::Free }
    }

    /// Deletes the key if the token holds it.
    fn release(&mut self, token: &Token) -> Release {
        match &self.lock {
            Some(stored) if !holds(stored, token) => Release::Other(holder(stored)),
            _ => self.force_release(),
        }
    }

    /// Deletes the key whoever holds it.
    fn force_release(&mut self) -> Release {
        self.lock.take().map_or(Release::Free, |stored| Release::Released(holder(&stored)))
    }

    fn inspect(&self, at: NodeTime) -> Inspection {
        Inspection {
            held: self.lock.as_ref().map(|stored| held(stored, at)),
            last_number: self.last_number().ok().flatten(),
        }
    }

    /// Fence first, then the lock: a fault leaves no lock behind.
    fn grant(&mut self, at: NodeTime, token: &Token, ttl: Ttl) -> Reply {
        let last = match self.last_number() {
            Ok(last) => last.map_or(0, FencingToken::get),
            Err(fault) => return Reply::Faulty(fault),
        };
        let number = match next_number(last, at.wall_us) {
            Ok(number) => number,
            Err(fault) => return Reply::Faulty(fault),
        };
        self.fence = Some(Stored {
            value: Value::Bytes(number.to_string().into_bytes()),
            ends_ms: Some(at.ttl_ms + fence_ttl(ttl)),
        });
        self.lock = Some(Stored {
            value: Value::Bytes(token.as_bytes().to_vec()),
            ends_ms: Some(at.ttl_ms + ttl.as_millis()),
        });
        Reply::Granted(number)
    }

    fn last_number(&self) -> Result<Option<FencingToken>, FenceFault> {
        match self.fence.as_ref().map(|stored| &stored.value) {
            None => Ok(None),
            Some(Value::OtherType(_)) => Err(FenceFault::Type),
            Some(Value::Bytes(bytes)) => {
                // Digits only, and few enough for a double to hold them all.
                let digits =
                    (1..=16).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit);
                let text = std::str::from_utf8(bytes).ok().filter(|_| digits);
                let number = text.and_then(|text| text.parse().ok()).and_then(FencingToken::new);
                number.map(Some).ok_or(FenceFault::Value)
            }
        }
    }
}

fn holds(stored: &Stored, token: &Token) -> bool {
    matches!(&stored.value, Value::Bytes(bytes) if bytes == token.as_bytes())
}

fn holder(stored: &Stored) -> Holder {
    match &stored.value {
        Value::Bytes(bytes) => Holder::from_value(bytes),
        Value::OtherType(name) => Holder::ForeignType(name.as_str().into()),
    }
}

fn held(stored: &Stored, at: NodeTime) -> Held {
    let ttl_left = match stored.ends_ms {
        Some(ends) => TtlLeft::Ends(Duration::from_millis(ends.saturating_sub(at.ttl_ms))),
        None => TtlLeft::Never,
    };
    Held { holder: holder(stored), ttl_left }
}

/// Milliseconds left, or none at all where there is no key or no end: both want a TTL.
fn left(stored: Option<&Stored>, at: NodeTime) -> u64 {
    stored.and_then(|stored| stored.ends_ms).map_or(0, |ends| ends.saturating_sub(at.ttl_ms))
}

/// Gives the key at least `ttl_ms` from now, and an end if it had none.
fn raise(stored: Option<&mut Stored>, at: NodeTime, ttl_ms: u64) {
    if let Some(stored) = stored {
        stored.ends_ms = Some(stored.ends_ms.unwrap_or(0).max(at.ttl_ms + ttl_ms));
    }
}
