//! What goes over the wire: request numbers, bytes of any kind, and the commands the server runs.

use tenure_core::script;
use tenure_core::script::{Answer, Call, Misread};
use tenure_core::{Channel, Entry, Poll};

use super::*;

#[test]
fn every_reply_begins_with_the_number_of_its_request() {
    let entry = Entry { channel: Channel::new(1), grant_ttl: ttl(1_000) };
    let poll = Poll { key: lock(), token: ours(), entry };
    let ops = [
        acquire(1_000),
        acquire(2_000),
        resume(1_000),
        renew(1_000),
        inspect(),
        Op::Poll(vec![poll]),
        release(),
        release(),
        steal(1_000),
        force_release(),
        force_release(),
        renew(1_000),
        resume(1_000),
    ];
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        // Above 2^53, a number that went through Lua's doubles would come back as another.
        for request in [0, 1, (1 << 53) + 1, u64::MAX - 1, u64::MAX] {
            for op in &ops {
                let command = node.command(&Call::new(op, request));
                let reply = node.cmd(&command);
                let echoed = reply.array()[0].text();
                assert_eq!(echoed, Some(request.to_string().as_str()), "{kind}: {op:?}");
            }
        }
    }
}

#[test]
fn the_reply_to_another_request_is_rejected() {
    let words = ["1", "free", "nobody"].map(|word| Answer::Bytes(word.into()));
    let answer = Answer::Array(words.to_vec());
    let read = |request| script::read(&release(), request, answer.clone());
    assert_eq!(read(1), Ok(released(Release::Free)));
    assert_eq!(read(11), Err(Misread::WrongRequest { request: 11 }));
}

#[test]
fn keys_and_tokens_of_any_bytes_round_trip() {
    let long = vec![b'\n'; LockKey::MAX_BYTES];
    let every_byte: Vec<u8> = (0..=255).collect();
    let keys: [&[u8]; 9] = [
        b"k",
        b" ",
        b"\0",
        b"\r\n",
        b"{}",
        b"a}b",
        "\u{1f512}{\u{8ba2}}".as_bytes(),
        &long,
        &every_byte,
    ];
    let labels = ["", "host/1", "\u{5907}\u{4efd} 100%\r\n", &"\u{fe}".repeat(32)];
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        for (i, key) in (0_u128..).zip(keys) {
            let key = LockKey::new(key).unwrap();
            for label in labels {
                let holder = Token::new(u128::MAX - i, &HolderLabel::new(label).unwrap());
                let acquire = |token, ms| Op::Acquire {
                    key: key.clone(),
                    token,
                    ttl: ttl(ms),
                    proposal: None,
                    place: None,
                };
                let taken = acquire(holder.clone(), 1_000);
                assert!(matches!(node.ask(&taken), Ok(Reply::Granted(_))), "{kind}: {key}");
                assert_eq!(
                    node.look(std::slice::from_ref(&key)).0[0],
                    token(&holder, 1_000),
                    "{kind}: {key}"
                );
                let held = node.ask(&acquire(ours(), 10));
                let told = super::held(Holder::from_value(holder.as_bytes()), Some(1_000));
                assert_eq!(held, Ok(Reply::Held(told)), "{kind}: {key}");
                let told = released(Release::Released(Holder::from_value(holder.as_bytes())));
                let release = Op::Release {
                    key: key.clone(),
                    token: holder,
                    entries: Vec::new(),
                    leave_tombstone: false,
                    yield_ms: 0,
                    number: None,
                };
                assert_eq!(node.ask(&release), Ok(told), "{kind}");
            }
        }
    }
}

/// The three conditions: set only if absent, with an end in the same step, to a value of its own.
#[test]
fn a_grant_is_one_set_with_a_ttl() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let monitor = node.server.monitor();
        assert_eq!(node.ask(&acquire(1_000)), Ok(granted(NOW)), "{kind}");
        let lines = monitor.stop();
        let lock = format!("\"{}\"", lock());
        let at_lock = |line: &&String| line.contains(&lock) && line.contains(" lua] ");
        let commands: Vec<_> = lines.iter().filter(at_lock).collect();
        let set = format!("\"SET\" {lock} \"{}\" \"PX\" \"1000\"", ours().as_str());
        assert_eq!(commands.len(), 2, "{kind}: {lines:?}");
        assert!(commands[0].contains(&format!("\"EXISTS\" {lock}")), "{kind}: {commands:?}");
        assert!(commands[1].ends_with(&set), "{kind}: {commands:?}");
    }
}
