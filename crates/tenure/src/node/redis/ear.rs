//! How a connection is notified of its waiters' turns: a channel of its own.

use bytes::BytesMut;
use tenure_core::{Channel, Wake, script::Answer};

use super::resp;
use crate::random;

/// The channel of one connection. It is subscribed to when the first waiter comes.
#[derive(Debug)]
pub(super) struct Ear {
    channel: Channel,
    listening: bool,
    /// Its own message has come.
    hears: bool,
    /// The server says that it has sent that message.
    told: bool,
}

/// What a message that answers no command means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The server confirms the subscription: the answer to that command.
    Subscribed,
    /// What it has published to itself.
    Itself,
    /// For a waiter.
    Wake(Wake),
    /// Nothing to us.
    Noise,
}

impl Ear {
    /// Random and new: a subscriber to it is this connection, alive.
    pub(super) fn new() -> Self {
        Self {
            channel: Channel::new(random::jitter()),
            listening: false,
            hears: false,
            told: false,
        }
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Subscribes, unless it has before, and verifies notifications: the server must count this
    /// connection and nobody on a channel that nobody knows, and its message must arrive. A proxy
    /// or a user without channels fails that. Returns whether two answers are to come.
    pub(super) fn listen(&mut self, out: &mut BytesMut) -> bool {
        if self.listening {
            return false;
        }
        self.listening = true;
        let channel = self.channel.as_bytes();
        resp::encode(out, &[b"SUBSCRIBE", channel]);
        resp::encode(out, &[b"EVAL", PROOF.as_bytes(), b"0", channel]);
        true
    }

    /// Takes the answer to the second command; returns whether it is good.
    pub(super) fn is_told(&mut self, answer: &Answer) -> bool {
        self.told = *answer == Answer::Array(vec![Answer::Int(1), Answer::Int(0)]);
        self.told
    }

    /// Whether all of the proof is here.
    pub(super) fn has_proof(&self) -> bool {
        self.told && self.hears
    }

    /// Whether its own message is lost, when the answer to a later command is here. Servers send it
    /// before the answer to the command that caused it, or right behind that.
    pub(super) fn is_deaf(&self) -> bool {
        self.told && !self.hears
    }

    /// Reads a message.
    pub(super) fn hear(&mut self, fields: &[Answer]) -> Heard {
        let text = |index: usize| match fields.get(index) {
            Some(Answer::Bytes(bytes)) => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        if text(1).map(str::as_bytes) != Some(self.channel.as_bytes()) {
            return Heard::Noise;
        }
        match text(0) {
            Some("subscribe") => Heard::Subscribed,
            Some("message") if text(2) == Some("") => {
                self.hears = true;
                Heard::Itself
            }
            Some("message") => {
                let wake = text(2).and_then(|text| Wake::read(&self.channel, text));
                wake.map_or(Heard::Noise, Heard::Wake)
            }
            _ => Heard::Noise,
        }
    }
}

const PROOF: &str = "local n = redis.call('PUBSUB', 'NUMSUB', ARGV[1] .. ':nobody') \
                     return {redis.call('PUBLISH', ARGV[1], ''), n[2]}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_on_its_own_channel_count() {
        let mut ear = Ear::new();
        let fields = |words: &[&str]| -> Vec<Answer> {
            words.iter().map(|word| Answer::Bytes(word.as_bytes().to_vec())).collect()
        };
        let own = ear.channel().to_string();
        let own = own.as_str();
        assert_eq!(ear.hear(&fields(&["subscribe", own])), Heard::Subscribed);
        let wake = Heard::Wake(Wake::Grant { to: ear.channel().clone(), token: "a@".into() });
        assert_eq!(ear.hear(&fields(&["message", own, "g a@"])), wake);
        for words in [&["message", "other", "g a@"][..], &["message", own, "x"], &["sunsubscribe"]]
        {
            assert_eq!(ear.hear(&fields(words)), Heard::Noise, "{words:?}");
        }
    }

    #[test]
    fn verification_needs_a_reply_and_a_message_in_either_order() {
        let good = Answer::Array(vec![Answer::Int(1), Answer::Int(0)]);
        for message_first in [true, false] {
            let mut ear = Ear::new();
            let own = ear.channel().to_string();
            let message = ["message", &own, ""].map(|word| Answer::Bytes(word.into()));
            if message_first {
                assert_eq!(ear.hear(&message), Heard::Itself);
            }
            assert!(!ear.has_proof() && !ear.is_deaf());
            assert!(ear.is_told(&good));
            assert_eq!(ear.is_deaf(), !message_first);
            assert_eq!(ear.hear(&message), Heard::Itself);
            assert!(ear.has_proof() && !ear.is_deaf());
        }
        assert!(!Ear::new().is_told(&Answer::Array(vec![Answer::Int(0), Answer::Int(0)])));
    }
}
