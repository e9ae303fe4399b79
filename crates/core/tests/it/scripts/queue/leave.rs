//! Leaving the queue: a release of a token that waits, and tombstones.

use std::slice::from_ref;

use super::*;

/// Alice leaves, and may be in the queue in these ways.
fn leave(entries: &[Entry], leave_tombstone: bool) -> Op {
    Op::Release {
        key: lock(),
        token: ours(),
        entries: entries.to_vec(),
        leave_tombstone,
        yield_ms: 0,
        number: None,
    }
}

#[test]
fn a_waiter_that_leaves_is_removed_from_the_queue() {
    let bobs = token(&theirs(), 500);
    let keys = |queue| [bobs.clone(), fence(7, 5_000), queue];
    let others = Reply::Released { release: Release::Other(bob()), next: Next::Nobody };
    let alice = |ticket, connection| waits(ticket, &ours(), live(connection));
    let carol = waits(6, &carol(), live(1));
    let row = |name, before: &[_], entries: &[_], after: Seen| {
        let op = leave(entries, false);
        Case(name, keys(queue(before, 70_000)), op, others.clone(), keys(after), vec![])
    };
    check(&[
        row("the only one", &[alice(5, 0)], &[entry(live(0))], nothing()),
        row(
            "of several",
            &[alice(5, 0), carol.clone()],
            &[entry(live(0))],
            queue(from_ref(&carol), 70_000),
        ),
        row(
            "over several connections",
            &[alice(4, 3), alice(5, 0), carol.clone()],
            &[entry(live(3)), entry(live(2)), entry(live(0))],
            queue(from_ref(&carol), 70_000),
        ),
        row(
            "it was not in it",
            from_ref(&carol),
            &[entry(live(0))],
            queue(from_ref(&carol), 70_000),
        ),
    ]);
}

/// More than a call of Lua takes at once.
#[test]
fn a_waiter_that_leaves_may_name_any_number_of_entries() {
    let entries: Vec<_> = (0..20_000).map(|i| entry(Channel::new(i))).collect();
    let stands = |i: usize| (5, entries[i].member(&ours()));
    let mine = [stands(0), stands(999), stands(1_000), stands(19_999)];
    let keys = |lock, queue| [lock, fence(7, 5_000), queue];
    let reply = released(Release::Released(alice()));
    check(&[Case(
        "20,000",
        keys(token(&ours(), 500), queue(&mine, 70_000)),
        leave(&entries, false),
        reply,
        keys(nothing(), nothing()),
        vec![],
    )]);
}

#[test]
fn a_waiter_that_leaves_does_not_hand_the_lock_to_itself() {
    let waiting = [waits(5, &ours(), live(0)), waits(6, &carol(), live(1))];
    let [lock, number] = served(&carol());
    check(&[Case(
        "free, and the first leaves: the second is served",
        [nothing(), fence(7, 5_000), queue(&waiting, 70_000)],
        leave(&[entry(live(0))], false),
        Reply::Released { release: Release::Free, next: Next::Waiter },
        [lock, number, nothing()],
        vec![grant(1, &carol())],
    )]);
}

#[test]
fn a_tombstone_is_left_when_a_command_may_still_arrive() {
    let others = Reply::Released { release: Release::Other(bob()), next: Next::Nobody };
    let grave = |age| tombstone(&carol(), age);
    let mine = || tombstone(&ours(), 0);
    let row = |name, before: Seen, after: Seen| {
        let keys = |queue| [token(&theirs(), 500), fence(7, 5_000), queue];
        let op = leave(&[entry(live(0))], true);
        Case(name, keys(before), op, others.clone(), keys(after), vec![])
    };
    let waiting = waits(5, &ours(), live(0));
    check(&[
        row("there is no queue", nothing(), queue(&[mine()], EXTRA)),
        row("it waits", queue(&[waiting], 70_000), queue(&[mine()], EXTRA)),
        row(
            "the queue lives longer: not shortened",
            queue(&[grave(5)], 91_000),
            queue(&[grave(5), mine()], 91_000),
        ),
        row("no end", queue(&[grave(5)], NO_END), queue(&[grave(5), mine()], EXTRA)),
        row(
            "tombstones are dropped after a minute",
            queue(&[grave(60_000), tombstone(&dave(), 59_999)], 70_000),
            queue(&[tombstone(&dave(), 59_999), mine()], EXTRA),
        ),
    ]);
    check(&[Case(
        "the lock is given up, and the tombstone stays",
        [token(&ours(), 500), fence(7, 5_000), nothing()],
        leave(&[], true),
        released(Release::Released(alice())),
        [nothing(), fence(7, 5_000), queue(&[mine(), released_by(&ours(), 0)], EXTRA)],
        vec![],
    )]);
}

#[test]
fn a_second_release_reports_already_released() {
    let already = Reply::Released { release: Release::AlreadyReleased, next: Next::Nobody };
    let (mine, given_up) = (|age| tombstone(&ours(), age), |age| released_by(&ours(), age));
    let row = |name, leave_tombstone, at_key: Seen, before: &[_], after: &[_]| {
        let keys = |queue| [at_key.clone(), fence(7, 5_000), queue];
        let (before, after) =
            (queue(before, 70_000), queue(after, if leave_tombstone { EXTRA } else { 70_000 }));
        Case(name, keys(before), leave(&[], leave_tombstone), already.clone(), keys(after), vec![])
    };
    let both = [mine(5), given_up(5)];
    check(&[
        row("another has it", false, token(&theirs(), 500), &both, &both),
        row("another's, tombstone", true, token(&theirs(), 500), &both, &[given_up(5), mine(0)]),
        row("a hash is there", false, hash(NO_END), &both, &both),
    ]);
    let free = |name, before: &[_], release, after| {
        let keys = |queue| [nothing(), fence(7, 5_000), queue];
        let reply = released(release);
        Case(name, keys(queue(before, EXTRA)), leave(&[], true), reply, keys(after), vec![])
    };
    let not_given_up = queue(&[mine(0)], EXTRA);
    check(&[
        free(
            "nobody has it",
            &both,
            Release::AlreadyReleased,
            queue(&[given_up(5), mine(0)], EXTRA),
        ),
        free("the token did not hold it", &[mine(5)], Release::Free, not_given_up.clone()),
        free(
            "another token gave it up",
            &[released_by(&theirs(), 5)],
            Release::Free,
            queue(&[released_by(&theirs(), 5), mine(0)], EXTRA),
        ),
        free("more than a minute ago", &[given_up(60_000)], Release::Free, not_given_up),
    ]);
    let [lock, number] = served(&carol());
    let waiting = waits(6, &carol(), live(1));
    check(&[Case(
        "nobody has it, and another waits",
        [nothing(), fence(7, 5_000), queue(&[waiting, mine(5), given_up(5)], 70_000)],
        leave(&[], false),
        Reply::Released { release: Release::AlreadyReleased, next: Next::Waiter },
        [lock, number, queue(&both, 70_000)],
        vec![grant(1, &carol())],
    )]);
}

#[test]
fn tombstones_end_by_age_and_with_their_key() {
    let row = |name, before: &[_], after: Seen| {
        let was = [token(&ours(), 500), fence(7, 5_000), queue(before, 1)];
        let op = leave(&[], false);
        let reply = released(Release::Released(alice()));
        Case(name, was, op, reply, [nothing(), fence(7, 5_000), after], vec![])
    };
    let grave = |age| tombstone(&carol(), age);
    check(&[
        // Popping the last member and putting it back makes a new key: it must have an end.
        row("a young one has an end", &[grave(5)], queue(&[grave(5)], EXTRA)),
        row("nearly old", &[grave(59_999)], queue(&[grave(59_999)], EXTRA)),
        row("old", &[grave(60_000)], nothing()),
        row(
            "old ones before a young one",
            &[tombstone(&dave(), 70_000), grave(5)],
            queue(&[grave(5)], EXTRA),
        ),
    ]);
}
