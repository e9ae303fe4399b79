//! Fuzz targets: what a server may send.

use bytes::BytesMut;
use tenure_core::{
    Channel, HolderLabel, LockKey, Op, Poll, RenewRequest, Token, Ttl,
    script::{self, Answer},
};
use tenure_testkit::fuzz;

use super::{
    fault,
    pubsub_channel::PubSubChannel,
    resp::{Decoder, Incoming},
    subscriptions, tracking,
};
use crate::node::instance::ServerInfo;

/// All that is read of these bytes, in pieces of this size, and whether it ended by an error.
fn read(bytes: &[u8], piece: usize) -> (Vec<Incoming>, bool) {
    let (mut decoder, mut input) = (Decoder::default(), BytesMut::new());
    let mut read = Vec::new();
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        loop {
            match decoder.next(&mut input) {
                Ok(Some(incoming)) => read.push(incoming),
                Ok(None) => break,
                Err(_) => return (read, true),
            }
        }
    }
    (read, false)
}

#[test]
fn fuzz_resp() {
    fuzz("resp", |input| {
        let whole = format!("{:?}", read(input, input.len().max(1)));
        for piece in [1, 2, 7] {
            assert_eq!(format!("{:?}", read(input, piece)), whole, "in pieces of {piece}");
        }
        // The kinds, in order, without their values.
        whole.chars().filter(|c| c.is_ascii_uppercase() || *c == ']').take(24).collect::<String>()
    });
}

/// An op for each form of reply.
fn ops() -> Vec<Op> {
    let key = || LockKey::new("k").unwrap();
    let ttl = Ttl::new(std::time::Duration::from_secs(1)).unwrap();
    let token = Token::new(0, &HolderLabel::new("host/7").unwrap());
    let number = tenure_core::FencingToken::new(9);
    let entry = tenure_core::Entry { channel: Channel::new(1), grant_ttl: ttl };
    let acquire =
        |proposal| Op::Acquire { key: key(), token: token.clone(), ttl, proposal, place: None };
    let renewal = RenewRequest { key: key(), token: token.clone(), ttl };
    let poll = Poll { key: key(), token: token.clone(), entry };
    vec![
        acquire(None),
        acquire(number),
        Op::Confirm { key: key(), token: token.clone(), ttl, number: number.unwrap() },
        Op::Clock,
        Op::Inspect { key: key(), unproved: false },
        Op::Inspect { key: key(), unproved: true },
        Op::Renew(vec![renewal; 4]),
        Op::Poll(vec![poll; 3]),
        Op::Resume { key: key(), token, ttl },
    ]
}

#[test]
fn fuzz_script_replies() {
    let ops = ops();
    fuzz("script_replies", |input| {
        let (replies, _) = read(input, input.len().max(1));
        let mut forms = String::new();
        for reply in replies {
            let Incoming::Reply(answer) = reply else { continue };
            let begins = match &answer {
                Answer::Array(fields) => fields.first().cloned(),
                _ => None,
            };
            for op in &ops {
                if let Ok(reply) = script::read(op, 7, answer.clone()) {
                    assert_eq!(begins, Some(Answer::Bytes(b"7".to_vec())), "{reply:?}");
                    let form = format!("{reply:?}");
                    forms.extend(form.chars().filter(char::is_ascii_uppercase).take(12));
                }
            }
        }
        forms
    });
}

#[test]
fn fuzz_pushes() {
    fuzz("pushes", |input| {
        let mut pubsub = PubSubChannel::new();
        let (messages, failed) = read(input, input.len().max(1));
        let mut seen = vec![failed];
        for message in &messages {
            let Incoming::Push(fields) = message else { continue };
            seen.push(tracking::changed(fields).is_some());
            seen.push(subscriptions::read(fields).is_some());
            // The channel of a connection is a secret of its own.
            assert_eq!(pubsub.receive(fields), super::pubsub_channel::ChannelMessage::Noise);
        }
        seen
    });
}

#[test]
fn fuzz_info() {
    fuzz("info", |input| {
        let Ok(text) = std::str::from_utf8(input) else { return false };
        let info = ServerInfo::read(text);
        assert!(info.id.as_ref().is_none_or(|id| !id.is_empty() && text.contains(&**id)));
        let _ = fault::is_noscript(text);
        info.id.is_some()
    });
}
