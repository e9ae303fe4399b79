//! Listening to the channels of locks.

use std::collections::BTreeSet;

use bytes::BytesMut;
use tenure_core::{Channel, script::Answer};

use super::resp;

/// The channels of locks that one connection listens to, or asked to.
///
/// Where the server does not permit it, each subscription fails, and waiters poll.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(BTreeSet<Channel>);

impl Subscriptions {
    /// Begins or ceases to listen, as is wanted now. Returns whether an answer is to come.
    pub(super) fn set(&mut self, channel: &Channel, is_wanted: bool, out: &mut BytesMut) -> bool {
        let (command, is_new) = if is_wanted {
            (&b"SUBSCRIBE"[..], self.0.insert(channel.clone()))
        } else {
            (&b"UNSUBSCRIBE"[..], self.0.remove(channel))
        };
        if is_new {
            resp::encode(out, &[command, channel.as_bytes()]);
        }
        is_new
    }
}

/// What a message says of a channel, which may be any.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// The server confirms that it began or ended a subscription: the answer to that command.
    Settled(&'a [u8]),
    /// A message to all subscribers.
    Released(&'a [u8]),
}

/// Reads a message; `None` for one of another kind.
pub(super) fn read(fields: &[Answer]) -> Option<Message<'_>> {
    match fields {
        [Answer::Bytes(kind), Answer::Bytes(channel), _] => match kind.as_slice() {
            b"subscribe" | b"unsubscribe" => Some(Message::Settled(channel)),
            b"message" => Some(Message::Released(channel)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_subscribed_once_and_unsubscribed_once() {
        let (mut subscriptions, mut out) = (Subscriptions::default(), BytesMut::new());
        let channel = Channel::named("c");
        let mut set = |is_wanted| subscriptions.set(&channel, is_wanted, &mut out);
        assert_eq!(
            [false, true, true, false, false].map(&mut set),
            [false, true, false, true, false]
        );
        let [subscribe, unsubscribe] = ["$9\r\nSUBSCRIBE", "$11\r\nUNSUBSCRIBE"];
        let sent = [subscribe, unsubscribe].map(|word| format!("*2\r\n{word}\r\n$1\r\nc\r\n"));
        assert_eq!(out, sent.concat());
    }

    #[test]
    fn only_messages_about_channels_are_read() {
        let text = |text: &str| Answer::Bytes(text.into());
        let fields = |kind| [text(kind), text("c"), Answer::Int(1)];
        for kind in ["subscribe", "unsubscribe"] {
            assert_eq!(read(&fields(kind)), Some(Message::Settled(b"c")));
        }
        assert_eq!(read(&fields("message")), Some(Message::Released(b"c")));
        for kind in ["sunsubscribe", "smessage", "psubscribe"] {
            assert_eq!(read(&fields(kind)), None, "{kind}");
        }
        assert_eq!(read(&[text("unsubscribe"), Answer::Other, Answer::Int(0)]), None);
    }
}
