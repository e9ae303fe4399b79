//! The model, with what happens to a server besides our ops.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    Channel, Eligibility, Entry, FencingToken, LockKey, MarkerCheck, MarkerFound, NodeTime,
    Notification, Op, Reply, Row, ServerIdentity, Stored, StoredValue, Table, Ticket, Token, Ttl,
    fence_ttl,
};

use crate::fairness::Before;
use crate::listeners::{AT_FIRST, LINES, channels};
use crate::node::Seen;
use crate::steps::{
    Listen, MarkerStep, Move, Part, RENEWED, Scored, TOMBSTONE_MS, TOMBSTONES, Write,
};

/// The rows of all locks.
pub(crate) struct Model {
    rows: BTreeMap<LockKey, Row>,
    /// The same as a table, until somebody else writes: no table offers that.
    table: Option<Table>,
    /// What stands at the marker's key, and the identity of the server.
    marker: Option<StoredValue>,
    identity: ServerIdentity,
    /// The channels that somebody listens to, by their index.
    open: BTreeSet<usize>,
    /// The last ticket that each token got, and its entry, by lock.
    told: BTreeMap<(LockKey, String), (Ticket, Entry)>,
}

impl Model {
    /// Rows for these locks.
    pub(crate) fn new(locks: &[LockKey], identity: ServerIdentity) -> Self {
        let rows = locks.iter().map(|lock| (lock.clone(), Row::default())).collect();
        let open = AT_FIRST.into_iter().collect();
        let (table, marker, told) = (Some(Table::default()), None, BTreeMap::new());
        Self { rows, table, marker, identity, open, told }
    }

    /// Carries out an op.
    pub(crate) fn ask(&mut self, at: NodeTime, op: &Op) -> (Reply, Vec<Notification>) {
        if let Op::Checked { check, op } = op {
            let eligibility = self.check(at, check);
            let (reply, notifications) = self.ask(at, op);
            return (Reply::Checked { eligibility, reply: Box::new(reply) }, notifications);
        }
        let channels = channels();
        let open: BTreeSet<_> = self.open.iter().map(|index| channels[*index].clone()).collect();
        let present = |channel: &Channel| open.contains(channel);
        let (reply, notifications) = match op {
            Op::Clock => (Reply::Clock { wall_us: at.wall_us }, Vec::new()),
            Op::Checked { .. } => unreachable!("it was taken apart"),
            Op::Acquire { key, .. }
            | Op::Confirm { key, .. }
            | Op::Resume { key, .. }
            | Op::Steal { key, .. }
            | Op::Release { key, .. }
            | Op::ForceRelease { key, .. }
            | Op::Inspect { key, .. } => self.row(key).apply(at, &present, op),
            Op::Renew(leases) => {
                let renew = leases.iter().map(|l| self.row(&l.key).renew(at, l));
                (Reply::Renewed(renew.collect()), Vec::new())
            }
            Op::Poll(polls) => {
                let polled = polls.iter().map(|poll| self.row(&poll.key).poll(at, poll));
                (Reply::Polled(polled.collect()), Vec::new())
            }
        };
        if let Some(table) = &mut self.table {
            let (answer, messages) = table.apply(at, &present, op);
            assert_eq!(
                (&answer, &messages),
                (&reply, &notifications),
                "the table does as its rows: {op:?}"
            );
        }
        if let (Op::Acquire { key, token, place: Some(place), .. }, Reply::Queued { ticket, .. }) =
            (op, &reply)
        {
            let told = (*ticket, place.entry.clone());
            self.told.insert((key.clone(), token.as_str().to_owned()), told);
        }
        (reply, notifications)
    }

    /// Checks the marker, and changes it.
    fn check(&mut self, at: NodeTime, check: &MarkerCheck) -> Eligibility {
        let found = match &self.marker {
            None => MarkerFound::Nothing,
            Some(StoredValue::Bytes(text)) => MarkerFound::Text(text),
            Some(_) => MarkerFound::OtherType,
        };
        let (answer, written) = check.judge(found, Some(&self.identity), at.wall_us / 1_000);
        if let Some(text) = written {
            self.marker = Some(StoredValue::Bytes(text.into_bytes()));
        }
        answer
    }

    /// Changes the marker as somebody else; the text that is to be written, if one is.
    pub(crate) fn mark(&mut self, at: NodeTime, step: &MarkerStep) -> Option<String> {
        let text = match step {
            MarkerStep::Renamed => return None,
            MarkerStep::Planted(planted) => {
                planted.text(at, &self.identity.replid, &self.identity.run_id)
            }
            MarkerStep::Text(text) => (*text).to_owned(),
            MarkerStep::OtherType => {
                self.marker = Some(StoredValue::OtherType("list".to_owned()));
                return None;
            }
            MarkerStep::Deleted => {
                self.marker = None;
                return None;
            }
        };
        self.marker = Some(StoredValue::Bytes(text.clone().into_bytes()));
        Some(text)
    }

    /// The server says something else of itself.
    pub(crate) fn identify(&mut self, identity: ServerIdentity) {
        self.identity = identity;
    }

    /// The type of the marker's key, and its text.
    pub(crate) fn marker(&self) -> (Option<&str>, Option<&str>) {
        match &self.marker {
            None => (Some("none"), None),
            Some(StoredValue::Bytes(text)) => (Some("string"), str::from_utf8(text).ok()),
            Some(StoredValue::OtherType(name)) => (Some(name), None),
            Some(StoredValue::Sorted(_)) => (Some("zset"), None),
        }
    }

    /// What an op finds, if it is about one lock.
    pub(crate) fn before(&mut self, at: NodeTime, op: &Op) -> Option<Before> {
        let (Op::Acquire { key, .. } | Op::Release { key, .. } | Op::ForceRelease { key, .. }) = op
        else {
            return None;
        };
        let row = self.row(key);
        row.expire(at);
        let free = row.lock.is_none();
        let queue = match &row.queue {
            Some(Stored { value: StoredValue::Sorted(members), .. }) => {
                members.iter().cloned().collect()
            }
            _ => Vec::new(),
        };
        let channels = channels();
        let name = |index: &usize| channels[*index].to_string();
        Some(Before { free, queue, open: self.open.iter().map(name).collect() })
    }

    /// The same op, with the ticket that its waiter got, or with the entries of its waiters.
    pub(crate) fn again(&self, op: &Op) -> Op {
        let mut op = op.clone();
        let told = |key: &LockKey, token: &Token| {
            self.told.get(&(key.clone(), token.as_str().to_owned())).cloned()
        };
        match &mut op {
            Op::Acquire { key, token, place: Some(place), .. } => {
                place.ticket = told(key, token).map(|(ticket, _)| ticket);
            }
            Op::Poll(polls) => polls.iter_mut().for_each(|poll| {
                if let Some((_, entry)) = told(&poll.key, &poll.token) {
                    poll.entry = entry;
                }
            }),
            _ => {}
        }
        op
    }

    /// Changes the subscriptions.
    pub(crate) fn listen(&mut self, change: Listen) {
        match change {
            Listen::Open(index) => _ = self.open.insert(index),
            Listen::Close(index) => _ = self.open.remove(&index),
            Listen::Cut(line) => self.open.retain(|index| index % LINES != line),
        }
    }

    /// Writes as somebody else, unless the server would refuse it: then it is false.
    pub(crate) fn foreign(
        &mut self,
        at: NodeTime,
        key: &LockKey,
        part: Part,
        write: &Write,
    ) -> bool {
        self.table = None;
        self.row(key).expire(at);
        let stored = self.part(key, part);
        let end = |ms| at.ttl_ms + ms;
        let sorted = |members: &[Scored]| Stored {
            value: StoredValue::Sorted(
                scored(members).map(|(member, score)| (score, member)).collect(),
            ),
            ends_ms: None,
        };
        match (write, stored.as_mut()) {
            (Write::Text(bytes, ms), _) => {
                let value = StoredValue::Bytes(bytes.clone());
                *stored = Some(Stored { value, ends_ms: ms.map(end) });
            }
            (Write::Other(name), _) => {
                let value = StoredValue::OtherType((*name).to_owned());
                *stored = Some(Stored { value, ends_ms: None });
            }
            (Write::Put(members), _) | (Write::Add(members), None) => {
                *stored = Some(sorted(members));
            }
            (Write::Add(members), Some(Stored { value: StoredValue::Sorted(old), .. })) => {
                let new: BTreeMap<_, _> = scored(members).collect();
                old.retain(|(_, member)| !new.contains_key(member));
                old.extend(new.into_iter().map(|(member, score)| (score, member)));
            }
            (Write::Add(_), Some(_)) => return false,
            (Write::Expire(ms), Some(stored)) => stored.ends_ms = Some(end(*ms)),
            (Write::Persist, Some(stored)) => stored.ends_ms = None,
            (Write::Expire(_) | Write::Persist, None) => {}
            (Write::Delete, _) => *stored = None,
        }
        true
    }

    /// Drops everything.
    pub(crate) fn flush(&mut self) {
        self.rows.values_mut().for_each(|row| *row = Row::default());
        self.marker = None;
        self.table = self.table.take().map(|_| Table::default());
    }

    /// Where a move takes the clock, in µs; `None` when it needs a key that has no end.
    pub(crate) fn target(&mut self, at: NodeTime, to: &Move) -> Option<u64> {
        let from_ms = |ms: u64| ms.saturating_mul(1_000).saturating_add(at.wall_us % 1_000);
        let after = |ms: u64, by: i64| ms.saturating_add_signed(by);
        let target = match to {
            Move::By(us) => after(at.wall_us, *us),
            Move::ToEnd(key, part, ms) => {
                from_ms(after(self.part(key, *part).as_ref()?.ends_ms?, *ms))
            }
            Move::ToHalf(key, ms) => {
                let half = fence_ttl(Ttl::new(RENEWED).unwrap()) / 2;
                let end = self.part(key, Part::Fence).as_ref()?.ends_ms?;
                from_ms(after(end.saturating_sub(half), *ms))
            }
            Move::ToOld(key, ms) => {
                let StoredValue::Sorted(members) = &self.part(key, Part::Queue).as_ref()?.value
                else {
                    return None;
                };
                let (score, _) = members.iter().find(|(score, _)| *score >= TOMBSTONES)?;
                from_ms(after(score - TOMBSTONES + TOMBSTONE_MS, *ms))
            }
            Move::ToLastNumber(us) => after(FencingToken::MAX.get(), *us),
        };
        // Nobody's clock shows the year 200,000, nor a time before this lock was invented.
        (EARLIEST_US..=LATEST_US).contains(&target).then_some(target)
    }

    /// What [`Node::look`](crate::node::Node::look) must see.
    pub(crate) fn look(&mut self, at: NodeTime, locks: &[LockKey]) -> (Vec<Seen>, i64) {
        let mut seen = Vec::new();
        for lock in locks {
            // The server, too, is asked for every key, and so drops what has ended.
            let row = self.rows.get_mut(lock).unwrap();
            row.expire(at);
            seen.extend([&row.lock, &row.fence].map(|stored| see(stored.as_ref(), at)));
            let queue = see(row.queue.as_ref(), at);
            seen.push(match &row.queue {
                Some(Stored { value: StoredValue::Sorted(members), .. }) => {
                    Seen { members: members.iter().cloned().collect(), ..queue }
                }
                _ => queue,
            });
            if let Some(table) = &mut self.table {
                let inspect = Op::Inspect { key: lock.clone(), unproved: false };
                let nobody = |_: &Channel| false;
                assert_eq!(table.apply(at, &nobody, &inspect), row.apply(at, &nobody, &inspect));
            }
        }
        let size = seen.iter().filter(|seen| seen.kind != "none").count();
        let size = size + usize::from(self.marker.is_some());
        (seen, i64::try_from(size).unwrap())
    }

    fn row(&mut self, key: &LockKey) -> &mut Row {
        self.rows.get_mut(key).unwrap()
    }

    fn part(&mut self, key: &LockKey, part: Part) -> &mut Option<Stored> {
        let row = self.row(key);
        match part {
            Part::Lock => &mut row.lock,
            Part::Fence => &mut row.fence,
            Part::Queue => &mut row.queue,
        }
    }
}

/// Members with their scores: the last score counts, as for ZADD.
fn scored(members: &[Scored]) -> impl Iterator<Item = (Vec<u8>, u64)> {
    let last: BTreeMap<_, _> =
        members.iter().map(|Scored(score, member)| (member.clone(), *score)).collect();
    last.into_iter()
}

fn see(stored: Option<&Stored>, at: NodeTime) -> Seen {
    let nothing = Seen { kind: "none".to_owned(), value: None, members: Vec::new(), pttl: -2 };
    let Some(Stored { value, ends_ms }) = stored else { return nothing };
    let pttl = ends_ms.map_or(-1, |ends| i64::try_from(ends - at.ttl_ms).unwrap());
    let (kind, value) = match value {
        StoredValue::Bytes(bytes) => ("string", Some(bytes.clone())),
        StoredValue::Sorted(_) => ("zset", None),
        StoredValue::OtherType(name) => (name.as_str(), None),
    };
    Seen { kind: kind.to_owned(), value, pttl, ..nothing }
}

const EARLIEST_US: u64 = 1_000_000_000_000_000;
const LATEST_US: u64 = 1 << 54;
