//! The lock's row in full, as the node's model has it, and what is kept of it in a state.

use std::collections::BTreeSet;

use tenure_core::{
    Channel, FENCE_FLOOR_TTL, FencingToken, Holder, HolderLabel, LockKey, Row, Stored, StoredValue,
    Ticket, Token, Ttl,
};

use crate::{
    rank::Rank,
    state::{Left, Line, ModelServer, QueueEntry, QueueState, Who},
    time::{GRANT_TTL, LEASE, NOW, lasting},
};

/// The words that stand for clients and connections on a server.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) key: LockKey,
    pub(crate) ttl: Ttl,
    pub(crate) grant_ttl: Ttl,
    tokens: Vec<Token>,
    channels: Vec<Channel>,
}

const MAX_ATTEMPTS: u8 = 4;
const MAX_EPOCHS: u8 = 8;

/// Tickets, numbers and tombstones are clock readings: those of 1970-01-12.
pub(crate) const EPOCH_US: u64 = 1_000_000_000_000;

/// Scores from here on are tombstones.
const TOMBSTONES: u64 = 8_000_000_000_000_000;

/// What the queue's key lives longer than the lock's.
const QUEUE_EXTRA_MS: u64 = 90_000;

impl Names {
    pub(crate) fn new() -> Self {
        let each = |most: u8| (0..8_u8).flat_map(move |client| (0..most).map(move |n| (client, n)));
        let token = |(client, attempt)| {
            let random = u128::from(client) << 8 | u128::from(attempt);
            Token::new(random, &HolderLabel::default())
        };
        let channel = |(client, epoch)| Channel::new(u64::from(client) << 8 | u64::from(epoch));
        Self {
            key: LockKey::new("job").expect("a key"),
            ttl: lasting(LEASE),
            grant_ttl: lasting(GRANT_TTL),
            tokens: each(MAX_ATTEMPTS).map(token).collect(),
            channels: each(MAX_EPOCHS).map(channel).collect(),
        }
    }

    pub(crate) fn token(&self, who: Who) -> &Token {
        &self.tokens[usize::from(who.client * MAX_ATTEMPTS + who.attempt)]
    }

    pub(crate) fn channel(&self, line: Line) -> &Channel {
        &self.channels[usize::from(line.client * MAX_EPOCHS + line.epoch)]
    }

    pub(crate) fn entry(&self, line: Line) -> tenure_core::Entry {
        tenure_core::Entry { channel: self.channel(line).clone(), grant_ttl: self.grant_ttl }
    }

    pub(crate) fn holder(&self, who: Who) -> Holder {
        Holder::from_value(self.token(who).as_bytes())
    }

    /// Another library's lock.
    pub(crate) fn foreign_holder(&self) -> Stored {
        Stored { value: StoredValue::Bytes(b"theirs".to_vec()), ends_ms: Some(NOW.ttl_ms + 1) }
    }

    /// A number below all that are given.
    pub(crate) fn least_number(&self) -> FencingToken {
        FencingToken::new(EPOCH_US).expect("a number")
    }

    /// Takes an attempt's tombstone out of a row.
    pub(crate) fn forget_tombstone(&self, row: &mut Row, who: Who) {
        let tombstone = [b"!", self.token(who).as_bytes()].concat();
        if let Some(Stored { value: StoredValue::Sorted(members), .. }) = &mut row.queue {
            members.retain(|(_, member)| !member.starts_with(&tombstone));
        }
    }

    /// The row that the state stands for.
    pub(crate) fn row(&self, state: &QueueState) -> Row {
        let ModelServer { lock, number, queue } = &state.server;
        let stored = |value, ms| Some(Stored { value, ends_ms: Some(NOW.ttl_ms + ms) });
        let bytes = |bytes: &[u8]| StoredValue::Bytes(bytes.to_vec());
        let entries = queue.iter().map(|entry| {
            let QueueEntry { ticket, who, epoch } = *entry;
            let member = self.entry(Line { client: who.client, epoch }).member(self.token(who));
            (EPOCH_US + u64::from(ticket), member)
        });
        let released = state.everyone().filter(|who| state.attempt(*who).has_tombstone);
        let tombstones = released.map(|who| {
            (TOMBSTONES + EPOCH_US / 1_000, [b"!", self.token(who).as_bytes()].concat())
        });
        let members: BTreeSet<_> = entries.chain(tombstones).collect();
        let day = u64::try_from(FENCE_FLOOR_TTL.as_millis()).unwrap_or(u64::MAX);
        Row {
            lock: lock
                .and_then(|(who, left)| stored(bytes(self.token(who).as_bytes()), u64::from(left))),
            fence: number.and_then(|number| {
                let number = EPOCH_US + u64::from(number);
                stored(bytes(number.to_string().as_bytes()), day)
            }),
            queue: if members.is_empty() {
                None
            } else {
                stored(StoredValue::Sorted(members), QUEUE_EXTRA_MS)
            },
        }
    }

    /// Keeps a row in the state. Everything that a row can hold is kept, or refused here: an end
    /// that is missing, or a value that no client of ours writes. What stands beside a tombstone
    /// only changes the words of a second release, so it is not kept.
    pub(crate) fn keep(&self, row: Row, state: &mut QueueState) -> Result<(), String> {
        let Row { lock, fence, queue } = row;
        let endless = |stored: &Option<Stored>| {
            stored.as_ref().is_some_and(|stored| stored.ends_ms.is_none())
        };
        if endless(&lock) || endless(&fence) || endless(&queue) {
            return Err("a key without an end".into());
        }
        let left = |stored: &Stored| stored.ends_ms.map_or(0, |ends| ends - NOW.ttl_ms);
        state.server.lock = match &lock {
            Some(stored @ Stored { value: StoredValue::Bytes(token), .. }) => {
                Some((who(token), Left::try_from(left(stored)).unwrap_or(Left::MAX)))
            }
            Some(_) => return Err("the lock is no string".into()),
            None => None,
        };
        state.server.number = match fence.map(|stored| stored.value) {
            Some(StoredValue::Bytes(digits)) => {
                let number = str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
                Some(rank(number.unwrap_or(0)))
            }
            Some(_) => return Err("the fence key is no string".into()),
            None => None,
        };
        state.server.queue.clear();
        for client in &mut state.clients {
            client.attempts.iter_mut().for_each(|attempt| attempt.has_tombstone = false);
        }
        let members = match queue.map(|stored| stored.value) {
            Some(StoredValue::Sorted(members)) => members,
            Some(_) => return Err("the queue is none".into()),
            None => BTreeSet::new(),
        };
        for (score, member) in members {
            match member.split_first() {
                Some((b'!', token)) => state.attempt_mut(who(token)).has_tombstone = true,
                _ => {
                    let (who, epoch) = (who(&member), hex(&member[55..57]));
                    state.server.queue.push(QueueEntry { ticket: rank(score), who, epoch });
                }
            }
        }
        Ok(())
    }
}

/// The connection that a channel is of.
pub(crate) fn line(channel: &Channel) -> Line {
    let digits = &channel.as_bytes()[19..];
    Line { client: hex(&digits[..2]), epoch: hex(&digits[2..]) }
}

/// The attempt that a token, or what begins with one, is of.
pub(crate) fn who(token: &[u8]) -> Who {
    Who { client: hex(&token[28..30]), attempt: hex(&token[30..32]) }
}

pub(crate) fn rank(reading: u64) -> Rank {
    Rank::try_from(reading.saturating_sub(EPOCH_US)).unwrap_or(Rank::MAX)
}

pub(crate) fn rank_of(ticket: Ticket) -> Rank {
    rank(ticket.get())
}

pub(crate) fn ticket(rank: Rank) -> Ticket {
    Ticket::new(EPOCH_US + u64::from(rank)).expect("a ticket")
}

/// Two digits.
fn hex(digits: &[u8]) -> u8 {
    let value = |digit: u8| if digit > b'9' { digit - b'a' + 10 } else { digit - b'0' };
    value(digits[0]) * 16 + value(digits[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// Whatever a row holds is kept, and nothing is added.
    #[test]
    fn a_row_round_trips() {
        let names = Names::new();
        let mut state = QueueState::new(&Config { clients: 3, attempts: 2, ..Config::default() });
        let who = |client, attempt| Who { client, attempt };
        state.server.lock = Some((who(2, 1), 990));
        state.server.number = Some(7);
        for (ticket, who, epoch) in [(0, who(1, 0), 3), (1, who(0, 1), 0), (1, who(0, 1), 1)] {
            state.server.queue.push(QueueEntry { ticket, who, epoch });
        }
        state.attempt_mut(who(1, 1)).has_tombstone = true;
        state.attempt_mut(who(2, 0)).has_tombstone = true;
        let row = names.row(&state);
        let mut again = QueueState::new(&Config { clients: 3, attempts: 2, ..Config::default() });
        names.keep(row.clone(), &mut again).unwrap();
        assert_eq!(names.row(&again), row);
        assert_eq!(again.server.queue, state.server.queue);
        assert_eq!(again.server.lock, state.server.lock);
    }

    #[test]
    fn a_key_without_an_end_is_refused() {
        let names = Names::new();
        let mut state = QueueState::new(&Config::default());
        state.server.lock = Some((Who { client: 0, attempt: 0 }, 990));
        let mut row = names.row(&state);
        if let Some(lock) = &mut row.lock {
            lock.ends_ms = None;
        }
        assert!(names.keep(row, &mut state).is_err());
    }
}
