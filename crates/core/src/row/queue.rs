//! The queue of one lock, in plain Rust.

use std::collections::BTreeSet;

use super::{NodeTime, Row, Stored, StoredValue};
use crate::{
    Channel, Entry, FencingToken, Holder, LockKey, Next, Notification, Place, Release, Reply,
    Ticket, Token, Ttl, Waiter,
    queue::{MAX_WATCH_CANDIDATES, QUEUE_EXTRA_MS, TOMBSTONE_MS, TOMBSTONES},
};

/// Entries and tombstones by score, then by member, as a server sorts them.
pub(super) type Members = BTreeSet<(u64, Vec<u8>)>;

/// Whom a lock that is free, or being given up, went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The caller stands first.
    Me,
    Nobody,
    Waiter,
    /// Many dead waiters were dropped, and there are more.
    More,
}

impl Served {
    /// As it is reported to a caller that does not wait.
    pub(super) const fn next(self) -> Next {
        match self {
            Self::Me | Self::Nobody => Next::Nobody,
            Self::Waiter => Next::Waiter,
            Self::More => Next::More,
        }
    }
}

/// How many entries may be read, which channels have subscribers, and who was notified.
pub(super) struct Outbox<'a> {
    pub(super) most: usize,
    pub(super) present: &'a dyn Fn(&Channel) -> bool,
    pub(super) sent: Vec<Notification>,
}

impl Outbox<'_> {
    /// Sends a message if anybody listens to its channel.
    fn notify(&mut self, notification: Notification) -> bool {
        let received = (self.present)(notification.to());
        self.sent.extend(received.then_some(notification));
        received
    }

    /// Notifies the waiters for a lock of several nodes, if it was released and nobody has it now.
    pub(super) fn notify_all(&mut self, key: &LockKey, reply: &Reply) {
        if let Reply::Released { release: Release::Released(_), next } = reply
            && *next != Next::Waiter
        {
            _ = self.notify(Notification::Free { to: Channel::of_lock(key) });
        }
    }
}

/// The parts of an entry's member; `None` for what no client of ours wrote.
struct Parsed<'a> {
    token: &'a str,
    channel: Channel,
    grant_ttl: Ttl,
}

fn parse(member: &[u8]) -> Option<Parsed<'_>> {
    let text = std::str::from_utf8(member).ok()?;
    let mut words = text.split(' ');
    let (token, channel, grant_ttl) = (words.next()?, words.next()?, words.next()?);
    let graphic = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_graphic());
    let number = grant_ttl.bytes().all(|b| b.is_ascii_digit()) && !grant_ttl.starts_with('0');
    let ours = graphic(token) && graphic(channel) && number && words.next().is_none();
    let grant_ttl = grant_ttl
        .parse()
        .ok()
        .filter(|_| ours && grant_ttl.len() < 16)
        .and_then(Ttl::from_millis)?;
    Some(Parsed { token, channel: Channel::named(channel), grant_ttl })
}

impl Row {
    /// Whether anything but a queue stands at the queue's key.
    pub(super) fn queue_is_foreign(&self) -> bool {
        let value = self.queue.as_ref().map(|stored| &stored.value);
        value.is_some_and(|value| !matches!(value, StoredValue::Sorted(_)))
    }

    /// Whether the token was cancelled: a command of a dead connection comes too late.
    pub(super) fn is_cancelled(&self, token: &Token) -> bool {
        self.score(&tombstone(token)).is_some()
    }

    /// Joins the queue, or finds the place that the waiter has already.
    pub(super) fn join(&mut self, at: NodeTime, token: &Token, place: &Place) -> Ticket {
        let member = place.entry.member(token);
        let previous = place.previous.as_ref().map(|entry| entry.member(token));
        let old = self.score(&member);
        let moved = previous.filter(|previous| *previous != member);
        let moved = moved.and_then(|previous| self.remove(&previous));
        let known = [old, moved, place.ticket.map(Ticket::get)].into_iter().flatten().min();
        let score = known.unwrap_or_else(|| {
            let top = self.members().range(..(TOMBSTONES, Vec::new())).next_back();
            at.wall_us.max(top.map_or(0, |(score, _)| score + 1))
        });
        // Others may have written any score; an entry among the tombstones would be none.
        let ticket = Ticket::new(score).unwrap_or(Ticket::LAST);
        self.add(ticket.get(), member);
        ticket
    }

    /// How many entries are before the waiter's own, if it has one.
    pub(super) fn position(&self, token: &Token, entry: &Entry) -> Option<u64> {
        let member = entry.member(token);
        let before = self.members().iter().position(|(_, other)| *other == member);
        before.map(|before| u64::try_from(before).unwrap_or(u64::MAX))
    }

    /// Gives the queue's key a life beyond the lock's.
    pub(super) fn keep_queue(&mut self, at: NodeTime, lock_left_ms: u64) {
        if let Some(queue) = &mut self.queue {
            queue.ends_ms = Some(at.ttl_ms + lock_left_ms + QUEUE_EXTRA_MS);
        }
    }

    /// Whether an earlier release gave up a lock that the token held.
    pub(super) fn was_released(&self, token: &Token) -> bool {
        self.score(&released(token)).is_some()
    }

    /// Writes a tombstone: nothing under this token may be granted or queued any more. Beside it
    /// stands that the token held the lock until now, where it did.
    pub(super) fn leave_tombstone(&mut self, at: NodeTime, token: &Token, held: bool) {
        if self.queue_is_foreign() {
            return;
        }
        let now_ms = at.wall_us / 1_000;
        let old = TOMBSTONES + now_ms.saturating_sub(TOMBSTONE_MS);
        self.change_members(|members| {
            members.retain(|(score, _)| *score < TOMBSTONES || *score > old);
        });
        self.add(TOMBSTONES + now_ms, tombstone(token));
        if held {
            self.add(TOMBSTONES + now_ms, released(token));
        }
        if let Some(queue) = &mut self.queue {
            queue.ends_ms = queue.ends_ms.max(Some(at.ttl_ms + QUEUE_EXTRA_MS));
        }
    }

    /// Takes the waiter out of the queue, however it stood there.
    pub(super) fn leave(&mut self, token: &Token, entries: &[Entry]) {
        for entry in entries {
            self.remove(&entry.member(token));
        }
    }

    /// Hands the lock, which is free or being given up, to the next waiter that is there.
    ///
    /// Each dead entry is dropped at first sight, and costs once: its client brings it back.
    pub(super) fn serve(
        &mut self,
        at: NodeTime,
        me: Option<&Token>,
        suspect: Option<&Channel>,
        proposal: Option<FencingToken>,
        outbox: &mut Outbox<'_>,
    ) -> Served {
        for _ in 0..outbox.most {
            let Some((score, member)) = self.pop_first() else {
                return Served::Nobody;
            };
            if score >= TOMBSTONES {
                // Only tombstones are left. A young one is put back, and its key's end with it.
                if score - TOMBSTONES + TOMBSTONE_MS > at.wall_us / 1_000 {
                    self.add(score, member);
                    self.keep_queue(at, 0);
                    return Served::Nobody;
                }
                continue;
            }
            let Some(Parsed { token, channel, grant_ttl }) = parse(&member) else { continue };
            if me.is_some_and(|me| me.as_str() == token) {
                return Served::Me;
            }
            if suspect == Some(&channel) {
                continue;
            }
            let Ok(number) = self.next_number(at, proposal) else {
                self.add(score, member);
                self.keep_queue(at, 0);
                return Served::Nobody;
            };
            let grant = Notification::Grant { to: channel.clone(), token: token.into() };
            if outbox.notify(grant) {
                self.set(at, token.as_bytes(), grant_ttl, number);
                _ = self.name_successor_watch(me, &channel, grant_ttl.as_millis(), outbox);
                return Served::Waiter;
            }
        }
        Served::More
    }

    /// Makes the next live waiter of another connection the successor watch of the one served.
    /// Where that is the caller, it gets the message too: else it cannot know the suspect. Returns
    /// whether there is one.
    pub(super) fn name_successor_watch(
        &mut self,
        me: Option<&Token>,
        granted: &Channel,
        grant_ttl_ms: u64,
        outbox: &mut Outbox<'_>,
    ) -> bool {
        let mut index = 0;
        for _ in 0..MAX_WATCH_CANDIDATES {
            let first = self.members().iter().nth(index).cloned();
            let Some((_, member)) = first.filter(|(score, _)| *score < TOMBSTONES) else {
                return false;
            };
            match parse(&member) {
                Some(Parsed { channel, .. }) if channel == *granted => index += 1,
                Some(Parsed { token, channel, .. }) => {
                    // It may receive nothing, but it sends a request, so it is alive.
                    let is_me = me.is_some_and(|me| me.as_str() == token);
                    let (token, granted) = (token.into(), granted.clone());
                    let message =
                        Notification::SuccessorWatch { to: channel, token, grant_ttl_ms, granted };
                    if outbox.notify(message) || is_me {
                        return true;
                    }
                    _ = self.remove(&member);
                }
                None => _ = self.remove(&member),
            }
        }
        false
    }

    /// Drops the waiters that are not present. Only for a node where a channel ends with its
    /// client, so that none of them can come back.
    pub fn forget_absent(&mut self, present: &dyn Fn(&Channel) -> bool) {
        let is_there = |member: &[u8]| parse(member).is_none_or(|entry| present(&entry.channel));
        if !self.queue_is_foreign() && self.queue.is_some() {
            self.change_members(|members| {
                members.retain(|(score, member)| *score >= TOMBSTONES || is_there(member));
            });
        }
    }

    /// The waiters, in order.
    pub(super) fn waiters(&self) -> Vec<Waiter> {
        let entries = self.members().iter().take_while(|(score, _)| *score < TOMBSTONES);
        let waiter = |(score, member): &(u64, Vec<u8>)| {
            let token = member.split(|&b| b == b' ').next().unwrap_or_default();
            let ticket = Ticket::new(*score).unwrap_or(Ticket::LAST);
            Waiter { holder: Holder::from_value(token), ticket }
        };
        entries.map(waiter).collect()
    }

    fn members(&self) -> &Members {
        const NONE: &Members = &Members::new();
        match self.queue.as_ref().map(|stored| &stored.value) {
            Some(StoredValue::Sorted(members)) => members,
            _ => NONE,
        }
    }

    /// Changes the members; a sorted set without any is no key, and a new one has no end yet.
    fn change_members<T>(&mut self, change: impl FnOnce(&mut Members) -> T) -> T {
        let empty = || Stored { value: StoredValue::Sorted(Members::new()), ends_ms: None };
        let mut stored = self.queue.take().unwrap_or_else(empty);
        let StoredValue::Sorted(members) = &mut stored.value else {
            // Whatever stands there is another's, and stays.
            self.queue = Some(stored);
            return change(&mut Members::new());
        };
        let result = change(members);
        let is_empty = members.is_empty();
        self.queue = (!is_empty).then_some(stored);
        result
    }

    fn score(&self, member: &[u8]) -> Option<u64> {
        self.members().iter().find(|(_, other)| other == member).map(|(score, _)| *score)
    }

    fn add(&mut self, score: u64, member: Vec<u8>) {
        self.change_members(|members| {
            members.retain(|(_, other)| *other != member);
            members.insert((score, member));
        });
    }

    fn remove(&mut self, member: &[u8]) -> Option<u64> {
        let score = self.score(member)?;
        self.change_members(|members| members.remove(&(score, member.to_vec())));
        Some(score)
    }

    fn pop_first(&mut self) -> Option<(u64, Vec<u8>)> {
        self.change_members(BTreeSet::pop_first)
    }
}

fn tombstone(token: &Token) -> Vec<u8> {
    [b"!", token.as_bytes()].concat()
}

/// What stands beside the tombstone of a token that held the lock when it was released.
fn released(token: &Token) -> Vec<u8> {
    [b"!", token.as_bytes(), b" released"].concat()
}
