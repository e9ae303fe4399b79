//! How a connection hears of its waiters' turns: a channel of its own.

use bytes::BytesMut;
use tenure_core::{Channel, Wake, script::Answer};

use super::resp;
use crate::random;

/// The channel of one connection. It is subscribed to when the first waiter comes.
#[derive(Debug)]
pub(super) struct Ear {
    channel: Channel,
    listening: bool,
}

/// What a message that answers no command means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The server confirms the subscription: the answer to that command.
    Subscribed,
    /// For a waiter.
    Wake(Wake),
    /// Nothing to us.
    Noise,
}

impl Ear {
    /// Random and new: whoever listens to it is this connection, alive.
    pub(super) fn new() -> Self {
        Self { channel: Channel::new(random::jitter()), listening: false }
    }

    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Subscribes, unless it has before, and has the server prove that it tells: it must count this
    /// connection and nobody on a channel that nobody knows. A proxy or a user without channels
    /// fails that. Returns whether two answers are to come.
    pub(super) fn listen(&mut self, out: &mut BytesMut) -> bool {
        if self.listening {
            return false;
        }
        self.listening = true;
        let channel = self.channel.as_str().as_bytes();
        resp::encode(out, &[b"SUBSCRIBE", channel]);
        resp::encode(out, &[b"EVAL", PROOF.as_bytes(), b"0", channel]);
        true
    }

    /// Whether the answer to the second command is the proof.
    pub(super) fn is_proof(answer: &Answer) -> bool {
        *answer == Answer::Array(vec![Answer::Int(1), Answer::Int(0)])
    }

    /// Reads a message.
    pub(super) fn hear(&self, fields: &[Answer]) -> Heard {
        let text = |index: usize| match fields.get(index) {
            Some(Answer::Bytes(bytes)) => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        if text(1) != Some(self.channel.as_str()) {
            return Heard::Noise;
        }
        match text(0) {
            Some("subscribe") => Heard::Subscribed,
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
    fn only_messages_on_its_own_channel_are_heard() {
        let ear = Ear::new();
        let fields = |words: &[&str]| -> Vec<Answer> {
            words.iter().map(|word| Answer::Bytes(word.as_bytes().to_vec())).collect()
        };
        let own = ear.channel().as_str();
        assert_eq!(ear.hear(&fields(&["subscribe", own])), Heard::Subscribed);
        let wake = Heard::Wake(Wake::Grant { to: ear.channel().clone(), token: "a@".into() });
        assert_eq!(ear.hear(&fields(&["message", own, "g a@"])), wake);
        for words in [&["message", "other", "g a@"][..], &["message", own, ""], &["sunsubscribe"]] {
            assert_eq!(ear.hear(&fields(words)), Heard::Noise, "{words:?}");
        }
    }
}
