//! The yardstick: tenure's scripts by the thinnest client there can be.
//!
//! It does what the protocol needs when nothing goes wrong: it joins, sleeps in a read, confirms
//! when it is notified, and releases. It has no timers, no second connection and no caller.

use std::time::Duration;

use tenure_core::{
    Channel, Entry, HolderLabel, LockKey, Notification, Op, Place, Release, Reply, Ticket, Token,
    Ttl,
    script::{self, Call},
};

use super::contender::Contender;
use crate::{
    Trouble,
    wire::{Frame, Wire},
};

/// One connection, one lock.
pub(super) struct Relay {
    wire: Wire,
    key: LockKey,
    entry: Entry,
    label: HolderLabel,
    ttl: Ttl,
    token: Token,
    tokens: u128,
    request: u64,
}

impl Relay {
    /// Connects, listens to a channel of its own and makes the scripts known.
    pub(super) fn connect(server: &str, key: &str, client: u32) -> Result<Self, Trouble> {
        let mut wire = Wire::connect(server)?;
        let name = u64::from(std::process::id()) << 32 | u64::from(client);
        let channel = Channel::new(name);
        wire.send(&[b"SUBSCRIBE", channel.as_bytes()])?;
        if !matches!(wire.receive()?, Frame::Push(_)) {
            return Err("the server refuses to be listened to".into());
        }
        for script in script::ALL {
            wire.send(&[b"SCRIPT", b"LOAD", script.text.as_bytes()])?;
            wire.receive()?;
        }
        let label = HolderLabel::new("relay")?;
        let tokens = u128::from(name) << 64;
        let token = Token::new(tokens, &label);
        let entry = Entry { channel, grant_ttl: Ttl::new(CLAIM)? };
        let (key, ttl) = (LockKey::new(key)?, Ttl::new(TTL)?);
        Ok(Self { wire, key, entry, label, ttl, token, tokens, request: 0 })
    }

    fn send(&mut self, op: &Op) -> Result<(), Trouble> {
        self.request += 1;
        let call = Call::new(op, self.request);
        let count = call.keys.len().to_string();
        let mut parts = vec![&b"EVALSHA"[..], call.script.sha1.as_bytes(), count.as_bytes()];
        parts.extend(call.keys.iter().chain(&call.args).map(Vec::as_slice));
        self.wire.send(&parts)
    }

    fn ask_for(&mut self, ticket: Option<Ticket>) -> Result<Op, Trouble> {
        let place = Place { entry: self.entry.clone(), ticket, previous: None, suspect: None };
        let (key, token) = (self.key.clone(), self.token.clone());
        let op = Op::Acquire { key, token, ttl: self.ttl, proposal: None, place: Some(place) };
        self.send(&op)?;
        Ok(op)
    }

    /// Whether a message announces the turn.
    fn is_turn(&self, message: Option<&str>) -> bool {
        let wake = message.and_then(|text| Notification::read(&self.entry.channel, text));
        matches!(wake, Some(Notification::Grant { token, .. }) if *token == *self.token.as_str())
    }
}

impl Contender for Relay {
    fn acquire(&mut self) -> Result<u64, Trouble> {
        self.tokens += 1;
        self.token = Token::new(self.tokens, &self.label);
        let mut asked = Some(self.ask_for(None)?);
        let (mut place, mut notified) = (None, false);
        loop {
            match self.wire.receive()? {
                Frame::Push(message) => notified |= self.is_turn(message.as_deref()),
                Frame::Reply(answer) => {
                    let op = asked.take().ok_or("a reply to nothing")?;
                    match script::read(&op, self.request, answer)? {
                        Reply::Granted(number) => return Ok(number.get()),
                        Reply::Queued { ticket, .. } => place = Some(ticket),
                        other => return Err(format!("the relay was answered {other:?}").into()),
                    }
                }
            }
            if notified && asked.is_none() {
                notified = false;
                asked = Some(self.ask_for(place)?);
            }
        }
    }

    fn release(&mut self) -> Result<(), Trouble> {
        let (key, token) = (self.key.clone(), self.token.clone());
        let op = Op::Release {
            key,
            token,
            entries: vec![self.entry.clone()],
            leave_tombstone: false,
            yield_ms: 0,
            number: None,
        };
        self.send(&op)?;
        loop {
            if let Frame::Reply(answer) = self.wire.receive()? {
                return match script::read(&op, self.request, answer)? {
                    Reply::Released { release: Release::Released(_), .. } => Ok(()),
                    other => Err(format!("the relay's release was answered {other:?}").into()),
                };
            }
        }
    }
}

/// The library's default.
const TTL: Duration = Duration::from_secs(10);

/// The library's.
const CLAIM: Duration = Duration::from_secs(1);
