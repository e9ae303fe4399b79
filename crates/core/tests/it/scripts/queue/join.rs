//! Joining the queue: places, tickets, and coming back.

use super::*;

/// Bob holds the lock; some wait; alice asks, and has this ticket at this position.
fn row(
    name: &'static str,
    before: &[(u64, Vec<u8>)],
    place: Place,
    (ticket, position): (u64, u64),
    after: &[(u64, Vec<u8>)],
) -> Case {
    let [lock, fence] = [token(&theirs(), 500), fence(7, 5_000)];
    let was = if before.is_empty() { nothing() } else { queue(before, 70_000) };
    Case(
        name,
        [lock.clone(), fence.clone(), was],
        join(place),
        queued(held(bob(), Some(500)), ticket, position),
        // Its key lives longer than the lock by more than any waiter's pause.
        [lock, fence, queue(after, 500 + EXTRA)],
        Vec::new(),
    )
}

#[test]
fn a_new_waiter_queues_behind_all_earlier_ones() {
    let alice = |ticket| waits(ticket, &ours(), live(0));
    let carol = |ticket| waits(ticket, &carol(), live(1));
    check(&[
        row("the first: its ticket is the clock", &[], first_time(), (NOW, 0), &[alice(NOW)]),
        row(
            "behind one who came before",
            &[carol(NOW - 9)],
            first_time(),
            (NOW, 1),
            &[carol(NOW - 9), alice(NOW)],
        ),
        row(
            "behind one who came in the same microsecond",
            &[carol(NOW)],
            first_time(),
            (NOW + 1, 1),
            &[carol(NOW), alice(NOW + 1)],
        ),
        row(
            "behind one who came before the clock was stepped back",
            &[carol(NOW + 3_600_000_000)],
            first_time(),
            (NOW + 3_600_000_001, 1),
            &[carol(NOW + 3_600_000_000), alice(NOW + 3_600_000_001)],
        ),
        row(
            "tombstones of others are behind all",
            &[tombstone(&theirs(), 5)],
            first_time(),
            (NOW, 0),
            &[alice(NOW), tombstone(&theirs(), 5)],
        ),
        row(
            "behind the last ticket there is: the last again, never a tombstone's score",
            &[carol(TOMBSTONES - 1)],
            first_time(),
            (TOMBSTONES - 1, 0),
            &[alice(TOMBSTONES - 1), carol(TOMBSTONES - 1)],
        ),
    ]);
}

#[test]
fn a_waiter_that_returns_keeps_its_place() {
    let alice = |ticket| waits(ticket, &ours(), live(0));
    let carol = |ticket| waits(ticket, &carol(), live(1));
    let over_old = |ticket| waits(ticket, &ours(), live(3));
    let moved = |ticket: Option<u64>| Place {
        previous: Some(entry(live(3))),
        ticket: ticket.and_then(Ticket::new),
        ..first_time()
    };
    check(&[
        row("it looks again", &[alice(5), carol(6)], with_ticket(5), (5, 0), &[alice(5), carol(6)]),
        row(
            "it looks again, and was never told its ticket",
            &[alice(5), carol(6)],
            first_time(),
            (5, 0),
            &[alice(5), carol(6)],
        ),
        row(
            "it was served, and missed it: with its ticket it stands before those who came later",
            &[carol(6)],
            with_ticket(5),
            (5, 0),
            &[alice(5), carol(6)],
        ),
        row(
            "it joined anew before its ticket was known to it: lowered",
            &[carol(6), alice(7)],
            with_ticket(5),
            (5, 0),
            &[alice(5), carol(6)],
        ),
        row("never raised", &[alice(5), carol(6)], with_ticket(7), (5, 0), &[alice(5), carol(6)]),
        row(
            "over a new connection: the old entry is moved",
            &[over_old(5), carol(6)],
            moved(None),
            (5, 0),
            &[alice(5), carol(6)],
        ),
        row(
            "over a new connection, and the old entry was dropped",
            &[carol(6)],
            moved(Some(5)),
            (5, 0),
            &[alice(5), carol(6)],
        ),
        row(
            "over both connections, since a command of the old one came late: the better place",
            &[alice(5), carol(6), over_old(7)],
            moved(None),
            (5, 0),
            &[alice(5), carol(6)],
        ),
        row(
            "over both connections: the better place is the old one's",
            &[over_old(5), carol(6), alice(7)],
            moved(None),
            (5, 0),
            &[alice(5), carol(6)],
        ),
        row(
            "over a new connection, and with an earlier ticket",
            &[carol(6), over_old(8)],
            moved(Some(5)),
            (5, 0),
            &[alice(5), carol(6)],
        ),
    ]);
}

#[test]
fn a_queue_always_has_a_ttl() {
    let kept = fence(7, 5_000);
    let alice = [waits(NOW, &ours(), live(0))];
    let row = |name, lock: Seen, told, pttl| {
        let before = [lock.clone(), kept.clone(), nothing()];
        let after = [lock, kept.clone(), queue(&alice, pttl)];
        Case(name, before, join(first_time()), queued(told, NOW, 0), after, Vec::new())
    };
    let hour = 3_600_000;
    check(&[
        row("an hour", token(&theirs(), hour), held(bob(), Some(3_600_000)), hour + EXTRA),
        row("for ever", token(&theirs(), NO_END), held(bob(), None), EXTRA),
        row("another library", text("1", NO_END), held(foreign(b"1"), None), EXTRA),
    ]);
    // A value of another type is no lock: nobody waits for it.
    for before in [nothing(), queue(&[waits(5, &carol(), live(1))], 70_000)] {
        let keys = [hash(500), kept.clone(), before];
        let told = Reply::Held(held(hash_holder(), Some(500)));
        check(&[Case("a hash", keys.clone(), join(first_time()), told, keys, Vec::new())]);
    }
}

/// The command of a dead connection, that a server runs after the token was given up.
#[test]
fn a_tombstone_stops_late_commands() {
    let tombstones = queue(&[tombstone(&ours(), 5)], 70_000);
    let row = |name, lock, op| {
        let keys = [lock, fence(7, 5_000), tombstones.clone()];
        Case(name, keys.clone(), op, Reply::Cancelled, keys, Vec::new())
    };
    let steal_any = Op::Steal { key: lock(), token: ours(), ttl: ttl(1_000), any: true };
    check(&[
        row("free: no late command holds it", nothing(), join(first_time())),
        row("free: nor by a try", nothing(), acquire(1_000)),
        row("held: no late command waits for it", token(&theirs(), 500), join(first_time())),
        row("held: nor with a ticket", token(&theirs(), 500), join(with_ticket(5))),
        row("free: no late command steals it", nothing(), steal(1_000)),
        row("held: no late command steals it", token(&theirs(), 500), steal(1_000)),
        row("a hash: no late command replaces it", hash(500), steal_any),
        row("free: no late command hands it on", nothing(), force_release()),
        row("held: no late command releases it", token(&theirs(), 500), force_release()),
    ]);
}
