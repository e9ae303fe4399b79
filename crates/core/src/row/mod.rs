//! The meaning of each op on one key, in plain Rust.

mod numbers;
mod queue;

use std::{collections::BTreeSet, time::Duration};

use self::queue::{Outbox, Served};
use crate::{
    Channel, Eligibility, FenceFault, FencingToken, Held, Holder, Inspection, Next, Notification,
    Op, Place, Poll, PollAnswer, Release, RenewRequest, RenewalAnswer, Reply, Source, Token, Ttl,
    TtlLeft, queue::MAX_SERVED,
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
    pub value: StoredValue,
    /// When it ends, on the TTL clock; alive while `now <= end`, as on a server.
    pub ends_ms: Option<u64>,
}

/// What can stand at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "what scripts distinguish")]
pub enum StoredValue {
    /// A string.
    Bytes(Vec<u8>),
    /// A sorted set with whole scores: a queue.
    Sorted(BTreeSet<(u64, Vec<u8>)>),
    /// Anything else, by the name of its type.
    OtherType(String),
}

/// The state of one lock on one node: its key, its fence key, and its queue.
///
/// This is the reference: the scripts are tested to answer exactly as it does, and the embedded
/// store runs it. Values of any kind may stand at each key, since others write there too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a lock has these three keys")]
pub struct Row {
    /// What stands at the lock's key.
    pub lock: Option<Stored>,
    /// What stands at the fence key.
    pub fence: Option<Stored>,
    /// What stands at the queue's key.
    pub queue: Option<Stored>,
}

impl Row {
    /// Drops what has ended. A server does the same before each command.
    pub fn expire(&mut self, at: NodeTime) {
        let alive = |stored: &mut Stored| stored.ends_ms.is_none_or(|ends| at.ttl_ms <= ends);
        self.lock.take_if(|stored| !alive(stored));
        self.fence.take_if(|stored| !alive(stored));
        self.queue.take_if(|stored| !alive(stored));
    }

    /// Whether nothing is stored.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lock.is_none() && self.fence.is_none() && self.queue.is_none()
    }

    /// Carries out one op on this key; which key it is is the caller's business.
    ///
    /// `present` says which channels have subscribers; the messages are for the caller to deliver.
    pub fn apply(
        &mut self,
        at: NodeTime,
        present: &dyn Fn(&Channel) -> bool,
        op: &Op,
    ) -> (Reply, Vec<Notification>) {
        self.apply_within(MAX_SERVED, at, present, op)
    }

    /// As [`Row::apply`], but polls at no more than `most` entries of the queue, whatever a server
    /// does: a model of a few waiters can so reach [`Reply::More`] and [`Next::More`].
    pub fn apply_within(
        &mut self,
        most: usize,
        at: NodeTime,
        present: &dyn Fn(&Channel) -> bool,
        op: &Op,
    ) -> (Reply, Vec<Notification>) {
        self.expire(at);
        let mut outbox = Outbox { most, present, sent: Vec::new() };
        let reply = match op {
            Op::Acquire { token, ttl, proposal, place, .. } => {
                let reply = self.acquire(at, token, *ttl, *proposal, place.as_ref(), &mut outbox);
                match proposal {
                    Some(_) => self.voted(at, reply),
                    None => reply,
                }
            }
            Op::Confirm { token, ttl, number, .. } => {
                let answer = self.confirm(at, token, *ttl, *number);
                Reply::Confirmed { answer, wall_us: at.wall_us }
            }
            Op::Clock => Reply::Clock { wall_us: at.wall_us },
            // The marker is the node's, and no row's.
            Op::Checked { op, .. } => {
                let (reply, notifications) = self.apply_within(most, at, present, op);
                let reply = Box::new(reply);
                return (
                    Reply::Checked { eligibility: Eligibility::Eligible, reply },
                    notifications,
                );
            }
            Op::Resume { token, ttl, .. } => self.resume(at, token, *ttl),
            Op::Steal { token, ttl, any, .. } => self.steal(at, token, *ttl, *any),
            Op::Release { key, token, entries, leave_tombstone, yield_ms, number } => {
                if *leave_tombstone {
                    let is_ours = self.lock.as_ref().is_some_and(|stored| holds(stored, token));
                    self.leave_tombstone(at, token, is_ours);
                }
                self.leave(token, entries);
                self.agree(at, token, *number);
                let reply = self.release(at, Some(token), *yield_ms, &mut outbox);
                if number.is_some() {
                    outbox.notify_all(key, &reply);
                }
                reply
            }
            Op::ForceRelease { key, token, any } => {
                let reply = self.force_release(at, token, *any, &mut outbox);
                outbox.notify_all(key, &reply);
                reply
            }
            Op::Inspect { .. } => Reply::Inspected(self.inspect(at)),
            Op::Renew(leases) => {
                Reply::Renewed(leases.iter().map(|lease| self.renew(at, lease)).collect())
            }
            Op::Poll(polls) => {
                Reply::Polled(polls.iter().map(|poll| self.poll(at, poll)).collect())
            }
        };
        (reply, outbox.sent)
    }

    /// Raises the TTL, never lowers it, if the token holds the lock. Never creates a key.
    pub fn renew(&mut self, at: NodeTime, lease: &RenewRequest) -> RenewalAnswer {
        self.expire(at);
        match &self.lock {
            None => RenewalAnswer::Gone,
            Some(stored) if holds(stored, &lease.token) => {
                self.raise(at, lease.ttl);
                RenewalAnswer::Renewed
            }
            Some(stored) => RenewalAnswer::Other(holder(stored)),
        }
    }

    /// Sees whether the waiter has anything to ask for, and gives its queue a life beyond the
    /// lock's if it has not.
    pub fn poll(&mut self, at: NodeTime, poll: &Poll) -> PollAnswer {
        self.expire(at);
        // A value of another type is no lock: the waiter's own acquisition finds that out.
        let other = self.lock.as_ref().filter(|stored| is_string(stored));
        let other = other.filter(|stored| !holds(stored, &poll.token));
        let Some(held) = other.map(|stored| held(stored, at)) else { return PollAnswer::Go };
        let Some(position) = self.position(&poll.token, &poll.entry) else {
            return PollAnswer::Go;
        };
        self.keep_queue(at, left(self.lock.as_ref(), at));
        PollAnswer::Waits { held, position }
    }

    fn acquire(
        &mut self,
        at: NodeTime,
        token: &Token,
        ttl: Ttl,
        proposal: Option<FencingToken>,
        place: Option<&Place>,
        outbox: &mut Outbox<'_>,
    ) -> Reply {
        if self.lock.as_ref().is_some_and(|stored| holds(stored, token)) {
            return self.keep(at, token, ttl, proposal);
        }
        if let Some(refusal) = self.given_up(token) {
            return refusal;
        }
        let free = self.lock.is_none();
        if free && let Err(fault) = self.next_number(at, proposal) {
            return Reply::Faulty(fault);
        }
        let queued = self.queue.is_some();
        // A value of another type is no lock, and nobody waits for it.
        let may_wait = self.lock.as_ref().map_or(queued, is_string);
        let waiting = place.filter(|_| may_wait);
        let joined = waiting.map(|place| (self.join(at, token, place), place));
        let suspect = place.and_then(|place| place.suspect.as_ref());
        if free {
            match self.serve(at, Some(token), suspect, proposal, outbox) {
                Served::Me | Served::Nobody => return self.grant(at, token, ttl, proposal),
                Served::More => {
                    if joined.is_some() {
                        self.keep_queue(at, 0);
                    }
                    return Reply::More;
                }
                Served::Waiter => {}
            }
        }
        let Some(held) = self.lock.as_ref().map(|stored| held(stored, at)) else {
            return Reply::More;
        };
        let Some((ticket, place)) = joined else { return Reply::Held(held) };
        self.keep_queue(at, left(self.lock.as_ref(), at));
        let position = self.position(token, &place.entry).unwrap_or_default();
        Reply::Queued { held, ticket, position }
    }

    /// The reply to a token that already holds the lock: a confirmation, a lost reply, a return.
    fn keep(
        &mut self,
        at: NodeTime,
        token: &Token,
        ttl: Ttl,
        proposal: Option<FencingToken>,
    ) -> Reply {
        match self.last_number() {
            Ok(Some(number)) => {
                self.raise(at, ttl);
                Reply::Granted(number)
            }
            // The counter was deleted under the holder: a new number is the only true one.
            Ok(None) => {
                let ends = self.lock.as_ref().and_then(|stored| stored.ends_ms);
                let reply = self.grant(at, token, ttl, proposal);
                // The grant must not shorten what the token already had.
                if let (Some(lock), Some(ends)) = (self.lock.as_mut(), ends) {
                    lock.ends_ms = lock.ends_ms.max(Some(ends));
                }
                reply
            }
            Err(fault) => Reply::Faulty(fault),
        }
    }

    /// Raises the TTL, never lowers it, if the token holds the lock. Never creates a key.
    fn resume(&mut self, at: NodeTime, token: &Token, ttl: Ttl) -> Reply {
        match &self.lock {
            None => Reply::Free,
            Some(stored) if holds(stored, token) => self.keep(at, token, ttl, None),
            Some(stored) => Reply::Held(held(stored, at)),
        }
    }

    /// Takes the lock from any holder.
    fn steal(&mut self, at: NodeTime, token: &Token, ttl: Ttl, any: bool) -> Reply {
        if let Some(refusal) = self.given_up(token) {
            return refusal;
        }
        match self.lock.as_ref().filter(|stored| !any && !holder(stored).may_be_lock()) {
            Some(stored) => Reply::Held(held(stored, at)),
            None => self.grant(at, token, ttl, None),
        }
    }

    /// Takes the lock from any holder; hands it over.
    fn force_release(
        &mut self,
        at: NodeTime,
        token: &Token,
        any: bool,
        outbox: &mut Outbox<'_>,
    ) -> Reply {
        if let Some(refusal) = self.given_up(token) {
            return refusal;
        }
        match self.lock.as_ref().map(holder).filter(|holder| !any && !holder.may_be_lock()) {
            Some(holder) => Reply::Released { release: Release::Other(holder), next: Next::Nobody },
            None => self.release(at, None, 0, outbox),
        }
    }

    /// The answer to a command under a token that was given up before: it comes over a connection
    /// that has ended. Where no queue can be there is no tombstone either, so nothing is granted.
    fn given_up(&self, token: &Token) -> Option<Reply> {
        if self.queue_is_foreign() {
            return Some(Reply::Faulty(FenceFault::Queue));
        }
        self.is_cancelled(token).then_some(Reply::Cancelled)
    }

    /// Gives the lock up if the token holds it, or anyway without a token; hands it on.
    fn release(
        &mut self,
        at: NodeTime,
        token: Option<&Token>,
        yield_ms: u64,
        outbox: &mut Outbox<'_>,
    ) -> Reply {
        let was_released = token.is_some_and(|token| self.was_released(token));
        let release = match &self.lock {
            None if was_released => Release::AlreadyReleased,
            None => Release::Free,
            Some(stored) if token.is_none_or(|token| holds(stored, token)) => {
                Release::Released(holder(stored))
            }
            Some(stored) => {
                let others = || Release::Other(holder(stored));
                let release = if was_released { Release::AlreadyReleased } else { others() };
                return Reply::Released { release, next: Next::Nobody };
            }
        };
        let yields = yield_ms > 0
            && self.lock.is_some()
            && self.name_successor_watch(None, &Channel::nobody(), yield_ms, outbox);
        let next =
            if yields { Next::Yielded } else { self.serve(at, None, None, None, outbox).next() };
        if next != Next::Waiter {
            self.lock = None;
        }
        Reply::Released { release, next }
    }

    fn inspect(&self, at: NodeTime) -> Inspection {
        let mut waiters = self.waiters();
        let waiting = Some(u64::try_from(waiters.len()).unwrap_or(u64::MAX));
        waiters.truncate(Inspection::MAX_WAITERS);
        let queue = self.queue_is_foreign().then_some(FenceFault::Queue);
        Inspection {
            held: self.lock.as_ref().map(|stored| held(stored, at)),
            last_number: self.last_number().ok().flatten(),
            fault: queue.or_else(|| self.next_number(at, None).err()),
            waiters,
            waiting,
            wall_us: at.wall_us,
            source: Source::Primary,
        }
    }
}

fn holds(stored: &Stored, token: &Token) -> bool {
    matches!(&stored.value, StoredValue::Bytes(bytes) if bytes == token.as_bytes())
}

const fn is_string(stored: &Stored) -> bool {
    matches!(stored.value, StoredValue::Bytes(_))
}

fn holder(stored: &Stored) -> Holder {
    match &stored.value {
        StoredValue::Bytes(bytes) => Holder::from_value(bytes),
        StoredValue::Sorted(_) => Holder::ForeignType("zset".into()),
        StoredValue::OtherType(name) => Holder::ForeignType(name.as_str().into()),
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
