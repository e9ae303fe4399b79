//! Looking at who waits.

use tenure_core::{Inspection, Waiter};

use super::*;

fn waiter(token: &Token, ticket: u64) -> Waiter {
    Waiter { holder: holder(token), ticket: Ticket::new(ticket).unwrap() }
}

#[test]
fn inspect_lists_who_waits_in_order() {
    let row = |name, waiting: Seen, waiters: Vec<Waiter>| {
        let told = Inspection {
            held: Some(held(bob(), Some(500))),
            last_number: Some(number(7)),
            waiting: u64::try_from(waiters.len()).unwrap(),
            waiters,
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
        row("something else", hash(9), vec![]),
    ]);
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
        assert_eq!(told.waiting, 150, "{kind}");
        let tickets: Vec<_> = told.waiters.iter().map(|waiter| waiter.ticket.get()).collect();
        assert_eq!(tickets, (0..100).collect::<Vec<_>>(), "{kind}");
    }
}

/// Scores that no client of ours writes: an answer all the same, and a queue that goes on.
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
