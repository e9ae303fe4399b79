//! Handing a lock on: by a release, by force, and past many who are dead.

use std::slice::from_ref;

use super::*;

/// Alice holds the lock, and others wait for it.
fn held_by_alice(members: &[(u64, Vec<u8>)]) -> [Seen; 3] {
    let queue = if members.is_empty() { nothing() } else { queue(members, 70_000) };
    [token(&ours(), 500), fence(7, 5_000), queue]
}

fn handed_over(release: Release) -> Reply {
    Reply::Released { release, next: Next::Waiter }
}

/// Carol has the lock, and these wait.
fn now_carols(members: &[(u64, Vec<u8>)]) -> [Seen; 3] {
    let [lock, fence] = served(&carol());
    [lock, fence, if members.is_empty() { nothing() } else { queue(members, 70_000) }]
}

/// Nobody has the lock, and nobody waits.
fn now_nobodys() -> [Seen; 3] {
    [nothing(), fence(7, 5_000), nothing()]
}

#[test]
fn a_release_hands_the_lock_to_the_first_live_waiter() {
    let carol_ = waits(5, &carol(), live(1));
    let dave_ = |connection| waits(6, &dave(), live(connection));
    let row = |name, waiting: &[_], left: &[_], notifications| {
        let to_carol = handed_over(Release::Released(alice()));
        Case(name, held_by_alice(waiting), release(), to_carol, now_carols(left), notifications)
    };
    let hears = grant(1, &carol());
    let none = released(Release::Released(alice()));
    let only_dead = [waits(5, &carol(), dead()), waits(6, &dave(), dead())];
    check(&[
        row("one waits", from_ref(&carol_), &[], vec![hears.clone()]),
        row(
            "two wait: the second is told to look after the first",
            &[carol_.clone(), dave_(2)],
            &[dave_(2)],
            vec![hears.clone(), successor_watch(2, &dave(), 1)],
        ),
        row(
            "the second is of the first's connection: it could not look after it",
            &[carol_.clone(), dave_(1), waits(7, &theirs(), live(2))],
            &[dave_(1), waits(7, &theirs(), live(2))],
            vec![hears.clone(), successor_watch(2, &theirs(), 1)],
        ),
        row(
            "the second is dead: dropped, and the third is told",
            &[carol_.clone(), waits(6, &dave(), dead()), waits(7, &theirs(), live(2))],
            &[waits(7, &theirs(), live(2))],
            vec![hears.clone(), successor_watch(2, &theirs(), 1)],
        ),
        row(
            "the first is dead: dropped",
            &[waits(4, &dave(), dead()), carol_.clone()],
            &[],
            vec![hears.clone()],
        ),
        row(
            "nobody becomes the successor watch but a tombstone",
            &[carol_, tombstone(&dave(), 5)],
            &[tombstone(&dave(), 5)],
            vec![hears],
        ),
        Case("nobody", held_by_alice(&[]), release(), none.clone(), now_nobodys(), vec![]),
        Case("only dead", held_by_alice(&only_dead), release(), none, now_nobodys(), vec![]),
    ]);
}

#[test]
fn each_waiter_sets_the_length_of_its_provisional_grant() {
    let patient = Entry { channel: live(1), grant_ttl: ttl(5_000) };
    check(&[Case(
        "5 s",
        held_by_alice(&[(5, patient.member(&carol()))]),
        release(),
        handed_over(Release::Released(alice())),
        [token(&carol(), 5_000), fence(NOW, DAY + 5_000), nothing()],
        vec![grant(1, &carol())],
    )]);
}

#[test]
fn a_hand_over_has_its_own_number() {
    let [lock, _, waiting] = held_by_alice(&[waits(5, &carol(), live(1))]);
    check(&[
        Case(
            "one more than the last, when the clock was stepped back",
            [lock.clone(), fence(NOW + 5, 5_000), waiting.clone()],
            release(),
            handed_over(Release::Released(alice())),
            [token(&carol(), 1_000), fence(NOW + 6, DAY + 1_000), nothing()],
            vec![grant(1, &carol())],
        ),
        Case(
            "there is none: nobody is served, and the lock is given up all the same",
            [lock, text("x", 5_000), waiting],
            release(),
            released(Release::Released(alice())),
            [nothing(), text("x", 5_000), queue(&[waits(5, &carol(), live(1))], 90_000)],
            vec![],
        ),
    ]);
}

#[test]
fn a_lock_that_is_free_or_released_by_force_is_handed_over_too() {
    let carol_ = || queue(&[waits(5, &carol(), live(1))], 70_000);
    let hears = || vec![grant(1, &carol())];
    let row = |name, lock, op, release| {
        let before = [lock, fence(7, 5_000), carol_()];
        Case(name, before, op, handed_over(release), now_carols(&[]), hears())
    };
    let bobs = || token(&theirs(), 500);
    let any = Op::ForceRelease { key: lock(), token: ours(), any: true };
    check(&[
        row("free: the lease has ended", nothing(), release(), Release::Free),
        row("free, by force", nothing(), force_release(), Release::Free),
        row("held, by force", bobs(), force_release(), Release::Released(bob())),
        row("a hash, by force", hash(NO_END), any, Release::Released(hash_holder())),
    ]);
    // A steal takes the lock from its holder, and not the places from the waiters.
    check(&[Case(
        "stolen",
        [bobs(), fence(7, 5_000), carol_()],
        steal(1_000),
        granted(NOW),
        [token(&ours(), 1_000), fence(NOW, DAY + 1_000), carol_()],
        vec![],
    )]);
}

#[test]
fn a_thousand_dead_waiters_are_skipped_in_small_steps() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let _listeners = Listeners::start(&node.server);
        let crowd = (0..1_000).map(|i| (i, format!("{i:032x}@ tenure:gone 1000").into_bytes()));
        let crowd: Vec<_> = crowd.chain([waits(5_000, &carol(), live(1))]).collect();

        put(&mut node, &held_by_alice(&crowd));
        let more = |release| Ok(Reply::Released { release, next: Next::More });
        assert_eq!(node.ask(&release()), more(Release::Released(alice())), "{kind}");
        assert_eq!(node.look(&[lock()]).0[0], nothing(), "{kind}: free already");
        for _ in 1..15 {
            assert_eq!(node.ask(&release()), more(Release::Free), "{kind}");
        }
        assert_eq!(node.ask(&release()), Ok(handed_over(Release::Free)), "{kind}");
        assert_eq!(node.look_at_all(&[lock()]).0, now_carols(&[]), "{kind}");

        // The same for one that only tries.
        node.reset();
        let waiting = queue(&crowd, 70_000);
        put(&mut node, &[nothing(), nothing(), waiting]);
        for _ in 0..15 {
            assert_eq!(node.ask(&acquire(1_000)), Ok(Reply::More), "{kind}");
        }
        let told = Reply::Held(held(holder(&carol()), Some(1_000)));
        assert_eq!(node.ask(&acquire(1_000)), Ok(told), "{kind}");
    }
}
