use std::time::Duration;

use super::*;
use crate::{Entry, FencingToken, HolderLabel, LockKey, Place, Poll, RenewRequest, Token, Ttl};

const OURS: &str = "000000000000000000000000000000a1@h";

fn key() -> LockKey {
    LockKey::new("k").unwrap()
}

fn token() -> Token {
    Token::new(0xa1, &HolderLabel::new("h").unwrap())
}

fn ttl() -> Ttl {
    Ttl::new(Duration::from_secs(1)).unwrap()
}

fn number(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn acquire() -> Op {
    Op::Acquire { key: key(), token: token(), ttl: ttl(), proposal: None, place: None }
}

fn proposing() -> Op {
    let proposal = Some(number(5));
    Op::Acquire { key: key(), token: token(), ttl: ttl(), proposal, place: None }
}

fn waiting() -> Op {
    let entry = Entry { channel: crate::Channel::new(7), grant_ttl: ttl() };
    let place = Some(Place { entry, ticket: None, previous: None, suspect: None });
    Op::Acquire { key: key(), token: token(), ttl: ttl(), proposal: None, place }
}

fn release(yield_ms: u64) -> Op {
    let entries = Vec::new();
    Op::Release {
        key: key(),
        token: token(),
        entries,
        leave_tombstone: false,
        yield_ms,
        number: None,
    }
}

/// One of each op that has a grammar of its own.
fn ops() -> Vec<Op> {
    let (resume, steal) = (
        Op::Resume { key: key(), token: token(), ttl: ttl() },
        Op::Steal { key: key(), token: token(), ttl: ttl(), any: false },
    );
    let confirm = Op::Confirm { key: key(), token: token(), ttl: ttl(), number: number(5) };
    let force = Op::ForceRelease { key: key(), token: token(), any: false };
    let renew = Op::Renew(vec![RenewRequest { key: key(), token: token(), ttl: ttl() }]);
    let entry = Entry { channel: crate::Channel::new(7), grant_ttl: ttl() };
    let poll = Op::Poll(vec![Poll { key: key(), token: token(), entry }]);
    vec![
        acquire(),
        proposing(),
        waiting(),
        resume,
        steal,
        confirm,
        release(0),
        release(300),
        force,
        Op::Inspect { key: key(), unproved: false },
        renew,
        poll,
        Op::Clock,
    ]
}

/// Digits with a sign before them are integers, words in brackets arrays, all else strings.
fn answer(text: &str) -> Answer {
    let mut open = vec![vec![Answer::Bytes(b"7".to_vec())]];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match word {
            "[" => open.push(Vec::new()),
            "]" => {
                let inner = open.pop().unwrap();
                open.last_mut().unwrap().push(Answer::Array(inner));
            }
            _ => open.last_mut().unwrap().push(match word.strip_prefix(':') {
                Some(int) => Answer::Int(int.parse().unwrap()),
                None if word == "''" => Answer::Bytes(Vec::new()),
                None => Answer::Bytes(word.as_bytes().to_vec()),
            }),
        }
    }
    Answer::Array(open.pop().unwrap())
}

#[test]
fn a_reply_to_another_request_is_rejected() {
    for op in ops() {
        let wrong = Err(Misread::WrongRequest { request: 7 });
        let other =
            Answer::Array(vec![Answer::Bytes(b"8".to_vec()), Answer::Bytes(b"free".into())]);
        assert_eq!(read(&op, 7, other), wrong);
        assert_eq!(read(&op, 7, Answer::Array(Vec::new())), wrong);
        assert_eq!(read(&op, 7, Answer::Int(7)), wrong);
        assert_eq!(read(&op, 7, Answer::Bytes(b"7".to_vec())), wrong);
    }
}

/// Every reply that any op may give, and which of [`ops`] may be given it.
#[test]
fn each_op_takes_the_forms_of_its_own_script_and_no_others() {
    let plain = "acquire proposing waiting resume steal confirm release yielding force inspect \
                 renew poll clock";
    let names: Vec<_> = plain.split(' ').collect();
    for (reply, takers) in [
        ("granted 5", "acquire waiting resume steal"),
        ("granted 5 5 9", "proposing"),
        ("free", "resume"),
        ("cancelled", "acquire waiting steal force"),
        ("cancelled '' 9", "proposing"),
        ("more", "acquire waiting"),
        ("fault queue", "acquire waiting steal force"),
        ("fault type", "acquire waiting resume steal force"),
        ("held x :5", "acquire waiting resume steal"),
        ("held x", "release yielding force"),
        ("type hash :-1", "acquire waiting resume steal"),
        ("type hash", "release yielding force"),
        ("queued held x :5 9 :0", "waiting"),
        ("queued type hash :-1 9 :0", ""),
        ("9 ours 5", "confirm"),
        ("9 gone", "confirm"),
        ("9 held x :5", "confirm"),
        ("9 fault value", "confirm"),
        ("9 fault ahead", "confirm"),
        ("9 fault queue", ""),
        ("fault ahead", ""),
        ("free nobody", "release yielding force"),
        ("free waiter", "release yielding force"),
        ("already nobody", "release yielding"),
        ("already waiter", "release yielding"),
        ("already yielded", ""),
        ("free yielded", ""),
        ("released 000000000000000000000000000000a1@h nobody", "release yielding force"),
        ("released 000000000000000000000000000000a1@h yielded", "yielding"),
        ("released x nobody", "force"),
        ("9 primary 5 '' :0 [ ] free", "inspect"),
        ("9 primary 5 queue :0 [ ] free", "inspect"),
        ("9 replica 5 '' :0 [ ] free", ""),
        ("9 primary '' '' :0 [ ] held x :5", "inspect"),
        ("[ renewed ]", "renew"),
        ("[ gone ]", "renew"),
        ("[ held x ]", "renew"),
        ("[ error NOPERM ]", "renew"),
        ("[ go ]", "poll"),
        ("[ held x :5 :0 ]", "poll"),
        ("[ type hash :5 :0 ]", ""),
        ("9", "clock"),
        ("", ""),
    ] {
        for (name, op) in names.iter().zip(ops()) {
            let taken = read(&op, 7, answer(reply)).is_ok();
            assert_eq!(taken, takers.split(' ').any(|taker| taker == *name), "{name}: {reply}");
            let longer = read(&op, 7, answer(&format!("{reply} extra")));
            assert!(longer.is_err(), "{name}: {reply} and one more field");
        }
    }
}

#[test]
fn a_number_has_one_spelling() {
    for digits in ["0", "00", "+5", "-5", "05", "5.0", "5e3", "0x5", "''", "x", "9007199254740992"]
    {
        assert!(read(&acquire(), 7, answer(&format!("granted {digits}"))).is_err(), "{digits}");
        let voted = answer(&format!("granted {digits} {digits} 9"));
        assert!(read(&proposing(), 7, voted).is_err(), "{digits}");
        let steal = Op::Steal { key: key(), token: token(), ttl: ttl(), any: false };
        assert!(read(&steal, 7, answer(&format!("granted {digits}"))).is_err(), "{digits}");
    }
    assert!(read(&acquire(), 7, answer("granted 9007199254740991")).is_ok());
    assert!(read(&acquire(), 7, answer("granted :5")).is_err(), "an integer is no string");
    for digits in ["+9", "09", "-1", "''", "99999999999999999999999"] {
        assert!(read(&Op::Clock, 7, answer(digits)).is_err(), "a clock of {digits}");
        let queued = answer(&format!("queued held x :5 {digits} :0"));
        assert!(read(&waiting(), 7, queued).is_err(), "a ticket of {digits}");
    }
    for reply in ["held x :-2", "held x 5", "queued held x :5 9 :-1"] {
        assert!(read(&waiting(), 7, answer(reply)).is_err(), "{reply}");
    }
}

#[test]
fn a_reply_that_contradicts_its_request_is_rejected() {
    let held = format!("held {OURS} :5");
    for (op, reply) in [
        (acquire(), held.as_str()),
        (waiting(), &format!("queued {held} 9 :0")),
        (Op::Resume { key: key(), token: token(), ttl: ttl() }, &held),
        (release(0), &format!("held {OURS}")),
        // Of a grant the number is the last one; what is confirmed is at least what was asked for.
        (proposing(), "granted 5 6 9"),
        (proposing(), "granted 5 '' 9"),
        (Op::Confirm { key: key(), token: token(), ttl: ttl(), number: number(5) }, "9 ours 4"),
    ] {
        assert!(read(&op, 7, answer(reply)).is_err(), "{reply}");
    }
    let unproved = Op::Inspect { key: key(), unproved: true };
    for source in ["primary", "replica", "unproved"] {
        assert!(read(&unproved, 7, answer(&format!("9 {source} 5 '' :0 [ ] free"))).is_ok());
    }
    assert!(read(&unproved, 7, answer("9 master 5 '' :0 [ ] free")).is_err());
    // More listed than there are; an entry without a ticket.
    let inspect = Op::Inspect { key: key(), unproved: false };
    assert!(read(&inspect, 7, answer("9 primary 5 '' :0 [ x 9 ] free")).is_err());
    assert!(read(&inspect, 7, answer("9 primary 5 '' :2 [ x ] free")).is_err());
    assert!(read(&inspect, 7, answer("9 primary 5 '' :1 [ x 9 ] free")).is_ok());
}
