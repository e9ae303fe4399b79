//! How a connection is notified of its waiters' turns: a channel of its own.

use bytes::BytesMut;
use tenure_core::{Channel, Notification, script::Answer};

use super::resp;
use crate::random;

/// The channel of one connection. It is subscribed to when the first waiter comes.
#[derive(Debug)]
pub(super) struct PubSubChannel {
    channel: Channel,
    listening: bool,
    /// Its own message has come.
    receives: bool,
    /// The server says that it has sent that message.
    counted: bool,
}

/// Whether the server notifies this connection's waiters of their turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Notifications {
    /// Not known yet; assumed.
    #[default]
    Assumed,
    /// It has published a message to itself, and received it.
    Verified,
    /// It is not permitted, or a proxy swallows it.
    Unavailable,
}

/// What a message that answers no command means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChannelMessage {
    /// The server confirms the subscription: the answer to that command.
    Subscribed,
    /// What it has published to itself.
    Own,
    /// For a waiter.
    Notification(Notification),
    /// Nothing to us.
    Noise,
}

impl PubSubChannel {
    /// Random and new: a subscriber to it is this connection, alive.
    pub(super) fn new() -> Self {
        Self {
            channel: Channel::new(random::jitter()),
            listening: false,
            receives: false,
            counted: false,
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
        resp::encode(out, &[b"EVAL", VERIFY.as_bytes(), b"0", channel]);
        true
    }

    /// Takes the answer to the second command; returns whether it is good.
    pub(super) fn is_counted(&mut self, answer: &Answer) -> bool {
        self.counted = *answer == Answer::Array(vec![Answer::Int(1), Answer::Int(0)]);
        self.counted
    }

    /// Whether both are here.
    pub(super) fn is_verified(&self) -> bool {
        self.counted && self.receives
    }

    /// Whether its own message is lost, when the answer to a later command is here. Servers send it
    /// before the answer to the command that caused it, or right behind that.
    pub(super) fn is_mute(&self) -> bool {
        self.counted && !self.receives
    }

    /// Reads a message.
    pub(super) fn receive(&mut self, fields: &[Answer]) -> ChannelMessage {
        let text = |index: usize| match fields.get(index) {
            Some(Answer::Bytes(bytes)) => std::str::from_utf8(bytes).ok(),
            _ => None,
        };
        if text(1).map(str::as_bytes) != Some(self.channel.as_bytes()) {
            return ChannelMessage::Noise;
        }
        match text(0) {
            Some("subscribe") => ChannelMessage::Subscribed,
            Some("message") if text(2) == Some("") => {
                self.receives = true;
                ChannelMessage::Own
            }
            Some("message") => {
                let wake = text(2).and_then(|text| Notification::read(&self.channel, text));
                wake.map_or(ChannelMessage::Noise, ChannelMessage::Notification)
            }
            _ => ChannelMessage::Noise,
        }
    }
}

const VERIFY: &str = "local n = redis.call('PUBSUB', 'NUMSUB', ARGV[1] .. ':nobody') \
                     return {redis.call('PUBLISH', ARGV[1], ''), n[2]}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_on_its_own_channel_count() {
        let mut pubsub = PubSubChannel::new();
        let fields = |words: &[&str]| -> Vec<Answer> {
            words.iter().map(|word| Answer::Bytes(word.as_bytes().to_vec())).collect()
        };
        let own = pubsub.channel().to_string();
        let own = own.as_str();
        assert_eq!(pubsub.receive(&fields(&["subscribe", own])), ChannelMessage::Subscribed);
        let wake = ChannelMessage::Notification(Notification::Grant {
            to: pubsub.channel().clone(),
            token: "a@".into(),
        });
        assert_eq!(pubsub.receive(&fields(&["message", own, "g a@"])), wake);
        for words in [&["message", "other", "g a@"][..], &["message", own, "x"], &["sunsubscribe"]]
        {
            assert_eq!(pubsub.receive(&fields(words)), ChannelMessage::Noise, "{words:?}");
        }
    }

    #[test]
    fn verification_needs_a_reply_and_a_message_in_either_order() {
        let good = Answer::Array(vec![Answer::Int(1), Answer::Int(0)]);
        for message_first in [true, false] {
            let mut pubsub = PubSubChannel::new();
            let own = pubsub.channel().to_string();
            let message = ["message", &own, ""].map(|word| Answer::Bytes(word.into()));
            if message_first {
                assert_eq!(pubsub.receive(&message), ChannelMessage::Own);
            }
            assert!(!pubsub.is_verified() && !pubsub.is_mute());
            assert!(pubsub.is_counted(&good));
            assert_eq!(pubsub.is_mute(), !message_first);
            assert_eq!(pubsub.receive(&message), ChannelMessage::Own);
            assert!(pubsub.is_verified() && !pubsub.is_mute());
        }
        assert!(
            !PubSubChannel::new().is_counted(&Answer::Array(vec![Answer::Int(0), Answer::Int(0)]))
        );
    }
}
