//! A waiter polls.

use tenure_core::{Poll, PollAnswer};

use super::*;

/// Alice polls, who came over connection 0.
fn poll() -> Op {
    polls(&[ours()])
}

/// These poll, all for the one lock and all over connection 0.
fn polls(tokens: &[Token]) -> Op {
    let poll = |token: &Token| Poll { key: lock(), token: token.clone(), entry: entry(live(0)) };
    Op::Poll(tokens.iter().map(poll).collect())
}

fn waits_on(held: Held, position: u64) -> Reply {
    Reply::Polled(vec![PollAnswer::Waits { held, position }])
}

fn goes() -> Reply {
    Reply::Polled(vec![PollAnswer::Go])
}

#[test]
fn a_poll_confirms_a_waiter_and_keeps_its_queue_alive() {
    let two = [waits(5, &carol(), live(1)), waits(7, &ours(), live(0))];
    let row = |name, holder: Seen, left, told| {
        let before = [holder.clone(), fence(7, 50), queue(&two, 60)];
        let after = [holder, fence(7, 50), queue(&two, left)];
        Case(name, before, poll(), told, after, vec![])
    };
    check(&[
        row("ours", token(&theirs(), 500), EXTRA + 500, waits_on(held(bob(), Some(500)), 1)),
        row(
            "another library's",
            text("x", 9),
            EXTRA + 9,
            waits_on(held(foreign(b"x"), Some(9)), 1),
        ),
        row("for ever", text("", NO_END), EXTRA, waits_on(held(foreign(b""), None), 1)),
    ]);
}

#[test]
fn a_poll_tells_a_waiter_to_acquire_and_changes_nothing() {
    let others = [waits(5, &carol(), live(0))];
    let elsewhere = [waits(5, &carol(), live(0)), waits(7, &ours(), live(1))];
    let mine = [waits(5, &ours(), live(0))];
    let row = |name, keys: [Seen; 3]| Case(name, keys.clone(), poll(), goes(), keys, vec![]);
    check(&[
        row("nothing at all", [nothing(), nothing(), nothing()]),
        row("free", [nothing(), fence(7, 50), queue(&mine, 60)]),
        row("set for it", [token(&ours(), 500), fence(7, 50), queue(&others, 60)]),
        row("no queue", [token(&theirs(), 500), fence(7, 50), nothing()]),
        row("not in it", [token(&theirs(), 500), fence(7, 50), queue(&others, 60)]),
        row("by an entry of before", [token(&theirs(), 500), nothing(), queue(&elsewhere, 60)]),
        row("a hash for a lock", [hash(NO_END), nothing(), queue(&mine, 60)]),
        row("a hash for a queue", [token(&theirs(), 500), nothing(), hash(60)]),
        row("a text for a queue", [token(&theirs(), 500), nothing(), text("x", NO_END)]),
    ]);
}

/// A large batch, with each kind of trouble in the middle of it.
#[test]
fn a_broken_lock_affects_no_other_lock_of_a_poll() {
    let name = |i: u64| LockKey::new(format!("order:{i}")).unwrap();
    let someone = |i: u64| Token::new(u128::from(i), &HolderLabel::new("alice/1").unwrap());
    let poll = |i| Poll { key: name(i), token: someone(i), entry: entry(live(0)) };
    let op = Op::Poll((0..128).map(poll).collect());
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let mut expected = Vec::new();
        for i in 0..128 {
            let Poll { key, token, entry } = poll(i);
            let take = |token, place| Op::Acquire {
                key: key.clone(),
                token,
                ttl: ttl(100),
                proposal: None,
                place,
            };
            node.ask(&take(theirs(), None)).unwrap();
            let place = Place { entry, ticket: None, previous: None, suspect: None };
            assert!(matches!(node.ask(&take(token, Some(place))), Ok(Reply::Queued { .. })));
            expected.push(PollAnswer::Go);
            match i % 4 {
                0 => _ = node.cmd(&[b"DEL", key.as_bytes()]),
                1 => {
                    node.cmd(&[b"DEL".to_vec(), key.queue()]);
                    node.cmd(&[b"HSET".to_vec(), key.queue(), b"a".to_vec(), b"b".to_vec()]);
                }
                2 => {
                    node.cmd(&[b"DEL", key.as_bytes()]);
                    node.cmd(&[b"HSET", key.as_bytes(), b"a", b"b"]);
                }
                _ => {
                    let held = held(bob(), Some(100));
                    expected[usize::try_from(i).unwrap()] = PollAnswer::Waits { held, position: 0 };
                }
            }
        }
        assert_eq!(node.ask(&op), Ok(Reply::Polled(expected)), "{kind}");
    }
}

#[test]
fn the_same_waiter_may_be_polled_twice() {
    let two = [waits(5, &carol(), live(0)), waits(7, &ours(), live(0))];
    let before = [token(&theirs(), 500), fence(7, 50), queue(&two, 60)];
    let after = [token(&theirs(), 500), fence(7, 50), queue(&two, EXTRA + 500)];
    let told = |position| PollAnswer::Waits { held: held(bob(), Some(500)), position };
    let reply = Reply::Polled(vec![told(1), told(0), PollAnswer::Go, told(1)]);
    let op = polls(&[ours(), carol(), dave(), ours()]);
    check(&[Case("four", before, op, reply, after, vec![])]);
}

/// The acquisition that follows reports what the poll lacks.
#[test]
fn a_poll_tells_a_user_without_a_command_to_acquire() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        for command in ["getrange", "zrank", "pttl", "pexpire"] {
            node.reset();
            let mine = [waits(5, &ours(), live(0))];
            put(&mut node, &[token(&theirs(), 500), fence(7, 50), queue(&mine, 60)]);
            assert!(node.cmd(&["ACL", "SETUSER", "default", &format!("-{command}")]).is_ok());
            let said = node.ask(&poll());
            assert!(node.cmd(&["ACL", "SETUSER", "default", "+@all"]).is_ok());
            assert_eq!(said, Ok(goes()), "{kind}: {command}");
        }
    }
}

/// It would say of a lock that is lost that it is held.
#[test]
fn a_replica_answers_no_poll() {
    let mine = [waits(5, &ours(), live(0))];
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let held = [token(&theirs(), 500), fence(7, 50), queue(&mine, 60)];
        let free = [nothing(), fence(7, 50), queue(&mine, 60)];
        for before in [held, free] {
            assert!(node.cmd(&["REPLICAOF", "NO", "ONE"]).is_ok());
            node.reset();
            put(&mut node, &before);
            assert!(node.cmd(&["REPLICAOF", "127.0.0.1", "1"]).is_ok());
            let words = node.ask(&poll()).unwrap_err();
            assert!(words.contains("READONLY"), "{kind}: {words}");
        }
    }
}

#[test]
fn a_server_out_of_memory_keeps_queues_alive() {
    let mine = [waits(5, &ours(), live(0))];
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        put(&mut node, &[token(&theirs(), 500), fence(7, 50), queue(&mine, 60)]);
        assert!(node.cmd(&["CONFIG", "SET", "maxmemory", "1"]).is_ok());
        assert_eq!(node.ask(&poll()), Ok(waits_on(held(bob(), Some(500)), 0)), "{kind}");
        assert_eq!(node.look_at_all(&[lock()]).0[2], queue(&mine, EXTRA + 500), "{kind}");
    }
}
