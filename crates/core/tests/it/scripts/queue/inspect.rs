//! Inspecting the queue.

use tenure_core::{FenceFault, Inspection, Source, Waiter};

use super::*;

fn waiter(token: &Token, ticket: u64) -> Waiter {
    Waiter { holder: holder(token), ticket: Ticket::new(ticket).unwrap() }
}

#[test]
fn inspect_lists_waiters_in_order() {
    let row = |name, waiting: Seen, waiters: Vec<Waiter>| {
        let told = Inspection {
            held: Some(held(bob(), Some(500))),
            last_number: Some(number(7)),
            waiting: Some(u64::try_from(waiters.len()).unwrap()),
            waiters,
            fault: None,
            wall_us: NOW,
            source: Source::Primary,
        };
        let keys = [token(&theirs(), 500), fence(7, 5_000), waiting];
        Case(name, keys.clone(), inspect(), Reply::Inspected(told), keys, vec![])
    };
    let junk = Waiter { holder: foreign(b"junk"), ticket: Ticket::new(7).unwrap() };
    check(&[
        row("nobody", nothing(), vec![]),
        row(
            "dead or alive: it tells nobody",
            queue(&[waits(5, &dave(), dead()), waits(6, &carol(), live(1))], 9),
            vec![waiter(&dave(), 5), waiter(&carol(), 6)],
        ),
        row(
            "tombstones do not wait",
            queue(&[waits(5, &carol(), live(1)), tombstone(&dave(), 5)], 9),
            vec![waiter(&carol(), 5)],
        ),
        row("what is no entry is shown as it is", queue(&[(7, b"junk x".to_vec())], 9), vec![junk]),
        row(
            "large round tickets",
            queue(&[waits(5_000_000_000_000_000, &carol(), live(1))], 9),
            vec![waiter(&carol(), 5_000_000_000_000_000)],
        ),
    ]);
}

/// What would be refused is not reported as free.
#[test]
fn inspect_reports_what_prevents_a_grant() {
    let row = |name, number_at: Seen, queue_at: Seen, fault| {
        let told = Inspection {
            held: None,
            last_number: (number_at == fence(FencingToken::MAX.get(), 500))
                .then_some(FencingToken::MAX),
            waiting: Some(0),
            waiters: Vec::new(),
            fault: Some(fault),
            wall_us: NOW,
            source: Source::Primary,
        };
        let keys = [nothing(), number_at, queue_at];
        Case(name, keys.clone(), inspect(), Reply::Inspected(told), keys, vec![])
    };
    check(&[
        row("no number", text("x", 500), nothing(), FenceFault::Value),
        row("a hash for a number", hash(500), nothing(), FenceFault::Type),
        row(
            "the last number",
            fence(FencingToken::MAX.get(), 500),
            nothing(),
            FenceFault::Exhausted,
        ),
        row("a hash for a queue", nothing(), hash(9), FenceFault::Queue),
        row("a text for a queue, and no number", text("x", 9), text("x", 9), FenceFault::Queue),
    ]);
}

/// A user without write access, and a replica, prove nothing; they are distinguished, and answer if
/// that is wanted.
#[test]
fn an_inspection_says_whether_it_is_verified() {
    let unproved = Op::Inspect { key: lock(), unproved: true };
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        for before in [token(&theirs(), 500), nothing()] {
            let reads = |node: &mut Node, from: Source| {
                let Ok(Reply::Inspected(told)) = node.ask(&unproved) else {
                    panic!("{kind}: not inspected");
                };
                assert_eq!(told.source, from, "{kind}");
                assert_eq!(told.held.is_some(), before != nothing(), "{kind}");
                assert_eq!(node.ask(&inspect()).is_ok(), from == Source::Primary, "{kind}");
            };
            node.reset();
            put(&mut node, &[before.clone(), fence(7, 500)]);
            reads(&mut node, Source::Primary);
            node.cmd(&["ACL", "SETUSER", "default", "-@write", "+eval", "+evalsha"]);
            reads(&mut node, Source::Unproved);
            node.cmd(&["ACL", "SETUSER", "default", "+@all"]);
            assert!(node.cmd(&["REPLICAOF", "127.0.0.1", "1"]).is_ok());
            reads(&mut node, Source::Replica);
            assert!(node.cmd(&["REPLICAOF", "NO", "ONE"]).is_ok());
        }
    }
}

#[test]
fn inspect_lists_the_first_hundred_and_counts_all() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let crowd: Vec<_> = (0..150).map(|i| (i, format!("{i} a 1").into_bytes())).collect();
        put(&mut node, &[nothing(), nothing(), queue(&crowd, 9)]);
        let Ok(Reply::Inspected(told)) = node.ask(&inspect()) else {
            panic!("{kind}: not inspected");
        };
        assert_eq!(told.waiting, Some(150), "{kind}");
        let tickets: Vec<_> = told.waiters.iter().map(|waiter| waiter.ticket.get()).collect();
        assert_eq!(tickets, (0..100).collect::<Vec<_>>(), "{kind}");
    }
}

/// Scores that no client of ours writes: there is still an answer, and the queue goes on.
#[test]
fn odd_scores_are_read_as_tickets() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let mine = entry(live(0)).member(&ours());
        for (score, ticket) in [("-5", 0), ("-inf", 0), ("1.5", 2), ("inf", NOW)] {
            node.reset();
            put(&mut node, &[token(&theirs(), 500), fence(7, 5_000)]);
            node.cmd(&[b"ZADD", &lock().queue()[..], score.as_bytes(), &mine]);
            assert!(matches!(node.ask(&inspect()), Ok(Reply::Inspected(_))), "{kind}");
            let told = queued(held(bob(), Some(500)), ticket, 0);
            assert_eq!(node.ask(&join(first_time())), Ok(told), "{kind}: {score}");
        }
    }
}
