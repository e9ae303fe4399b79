//! Whose turn it is when an acquire meets a lock that is free, and confirming.

use super::*;

/// The lock is free, and some have waited for it.
fn free(before: &[(u64, Vec<u8>)]) -> [Seen; 3] {
    [nothing(), fence(7, 5_000), queue(before, 70_000)]
}

fn then([lock, fence]: [Seen; 2], queue: Seen) -> [Seen; 3] {
    [lock, fence, queue]
}

#[test]
fn an_acquisition_overtakes_no_live_waiter_and_skips_dead_ones() {
    let taken = [token(&ours(), 1_000), fence(NOW, DAY + 1_000)];
    let told = Reply::Held(held(holder(&carol()), Some(1_000)));
    check(&[
        Case(
            "a live one: it is served",
            free(&[waits(5, &carol(), live(1))]),
            acquire(1_000),
            told.clone(),
            then(served(&carol()), nothing()),
            vec![grant(1, &carol())],
        ),
        Case(
            "a dead one, and a live one behind it",
            free(&[waits(5, &dave(), dead()), waits(6, &carol(), live(1))]),
            acquire(1_000),
            told,
            then(served(&carol()), nothing()),
            vec![grant(1, &carol())],
        ),
        Case(
            "dead ones alone",
            free(&[waits(5, &dave(), dead()), waits(6, &carol(), dead())]),
            acquire(1_000),
            granted(NOW),
            then(taken.clone(), nothing()),
            vec![],
        ),
        Case(
            "what is no entry is passed, too",
            free(&[(5, b"junk".to_vec()), (6, b"a b 0".to_vec())]),
            acquire(1_000),
            granted(NOW),
            then(taken.clone(), nothing()),
            vec![],
        ),
        Case(
            "another's tombstone is nobody's turn, and stays",
            free(&[tombstone(&dave(), 59_999)]),
            acquire(1_000),
            granted(NOW),
            then(taken.clone(), queue(&[tombstone(&dave(), 59_999)], EXTRA)),
            vec![],
        ),
        Case(
            "after a minute it is dropped",
            free(&[tombstone(&dave(), 60_000)]),
            acquire(1_000),
            granted(NOW),
            then(taken, nothing()),
            vec![],
        ),
    ]);
    let keys = [token(&theirs(), 500), fence(7, 5_000), queue(&[waits(5, &dave(), dead())], 9)];
    let told = Reply::Held(held(bob(), Some(500)));
    check(&[Case("held: nobody is served", keys.clone(), acquire(10), told, keys, vec![])]);
}

#[test]
fn waiters_are_served_in_the_order_of_their_tickets() {
    let alice = |ticket| waits(ticket, &ours(), live(0));
    let carol_ = |ticket| waits(ticket, &carol(), live(1));
    let mine = [token(&ours(), 10_000), fence(NOW, DAY + 10_000)];
    let told = |ticket| queued(held(holder(&carol()), Some(1_000)), ticket, 0);
    let suspecting = Place { suspect: Some(live(1)), ..with_ticket(6) };
    check(&[
        Case(
            "nobody waits: no queue is made",
            [nothing(), nothing(), nothing()],
            join(first_time()),
            granted(NOW),
            then(mine.clone(), nothing()),
            vec![],
        ),
        Case(
            "it is the first: for the full TTL at once, and nobody is told",
            free(&[alice(5), carol_(6)]),
            join(with_ticket(5)),
            granted(NOW),
            then(mine.clone(), queue(&[carol_(6)], 70_000)),
            vec![],
        ),
        Case(
            "it is the first by the ticket that it brings",
            free(&[carol_(6)]),
            join(with_ticket(5)),
            granted(NOW),
            then(mine.clone(), queue(&[carol_(6)], 70_000)),
            vec![],
        ),
        Case(
            "it is the second: the first is served, and the caller becomes the successor watch",
            free(&[carol_(5), alice(6), waits(7, &dave(), live(2))]),
            join(with_ticket(6)),
            told(6),
            then(served(&carol()), queue(&[alice(6), waits(7, &dave(), live(2))], 1_000 + EXTRA)),
            vec![grant(1, &carol()), successor_watch(0, &ours(), 1)],
        ),
        Case(
            "it is the second and hears nothing: it keeps its place, and nobody else is told",
            free(&[carol_(5), waits(6, &ours(), dead()), waits(7, &dave(), live(2))]),
            join(Place { entry: entry(dead()), ..with_ticket(6) }),
            told(6),
            then(
                served(&carol()),
                queue(&[waits(6, &ours(), dead()), waits(7, &dave(), live(2))], 1_000 + EXTRA),
            ),
            vec![grant(1, &carol())],
        ),
        Case(
            "it comes for the first time: the first is served, and the caller is the next",
            free(&[carol_(5)]),
            join(first_time()),
            told(NOW),
            then(served(&carol()), queue(&[alice(NOW)], 1_000 + EXTRA)),
            vec![grant(1, &carol()), successor_watch(0, &ours(), 1)],
        ),
        Case(
            "the first let a provisional grant pass: it is suspect, and passed over",
            free(&[carol_(5), alice(6)]),
            join(suspecting),
            granted(NOW),
            then(mine, nothing()),
            vec![],
        ),
    ]);
}

#[test]
fn a_waiter_confirms_with_the_number_of_the_hand_over() {
    let number = fence(7, DAY + 1_000);
    let row = |name, pttl, after| {
        let before = [token(&ours(), pttl), number.clone(), nothing()];
        let after = [token(&ours(), after), number.clone(), nothing()];
        Case(name, before, join(with_ticket(5)), granted(7), after, vec![])
    };
    check(&[
        row("raised to the full TTL", 900, 10_000),
        row("at the last moment", 1, 10_000),
        row("never lowered: a late copy of the command", 60_000, 60_000),
    ]);
    let claim_over = free(&[waits(6, &carol(), live(1))]);
    check(&[Case(
        "too late, the provisional grant is over: a new number, if nobody came before",
        claim_over,
        join(with_ticket(5)),
        granted(NOW),
        [
            token(&ours(), 10_000),
            fence(NOW, DAY + 10_000),
            queue(&[waits(6, &carol(), live(1))], 70_000),
        ],
        vec![],
    )]);
}
