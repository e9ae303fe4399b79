//! What several nodes are asked beside: proposals, confirmations, a release's number, the clock.

use tenure_core::{Confirmation, FenceFault};

use super::*;

fn propose(ms: u64, n: u64) -> Op {
    let proposal = Some(number(n));
    Op::Acquire { key: lock(), token: ours(), ttl: ttl(ms), proposal, place: None }
}

fn confirm(n: u64) -> Op {
    Op::Confirm { key: lock(), token: ours(), ttl: ttl(1_000), number: number(n) }
}

fn release_at(n: u64) -> Op {
    release_under(Some(number(n)))
}

fn voted(reply: Reply, last: Option<u64>) -> Reply {
    Reply::Voted { reply: Box::new(reply), last_number: last.map(number), wall_us: NOW }
}

fn confirmed(answer: Confirmation) -> Reply {
    Reply::Confirmed { answer, wall_us: NOW }
}

#[test]
fn a_proposal_replaces_the_clock() {
    let row = |name, last: Seen, proposed, n| {
        Case(
            name,
            [nothing(), last],
            propose(1_000, proposed),
            voted(granted(n), Some(n)),
            [token(&ours(), 1_000), fence(n, DAY + 1_000)],
        )
    };
    check(&[
        row("the first number", nothing(), NOW - 5, NOW - 5),
        row("below the clock, and above the last number", fence(3, 500), NOW - 5, NOW - 5),
        row("the last number itself", fence(NOW - 5, 500), NOW - 5, NOW - 4),
        row("below the last number", fence(NOW - 3, 500), NOW - 5, NOW - 2),
        row("an hour behind", fence(3, 500), NOW - HOUR, NOW - HOUR),
        row("more than an hour behind", fence(3, 500), NOW - HOUR - 1, NOW - HOUR),
        row("zero", nothing(), 0, NOW - HOUR),
        row("an hour ahead", fence(3, 500), NOW + HOUR, NOW + HOUR),
        row("more than an hour ahead", fence(3, 500), NOW + HOUR + 1, NOW + HOUR),
        row("the last number there is", nothing(), LAST, NOW + HOUR),
        row(
            "more than an hour ahead, behind as much",
            fence(NOW + HOUR, 500),
            LAST,
            NOW + HOUR + 1,
        ),
    ]);
}

/// A refusal has the last number: the next proposal is to be larger.
#[test]
fn every_reply_to_a_proposal_has_the_last_number_and_the_clock() {
    let same =
        |name, keys: [Seen; 2], reply| Case(name, keys.clone(), propose(1_000, NOW), reply, keys);
    let by_bob = Reply::Held(held(bob(), Some(500)));
    let fault = |fault, last| voted(Reply::Faulty(fault), last);
    check(&[
        same("held", [token(&theirs(), 500), fence(7, 500)], voted(by_bob.clone(), Some(7))),
        same("held, no number", [token(&theirs(), 500), nothing()], voted(by_bob.clone(), None)),
        same("held, no true number", [token(&theirs(), 500), text("x", 500)], voted(by_bob, None)),
        same("no true number", [nothing(), text("x", 500)], fault(FenceFault::Value, None)),
        same(
            "no number left",
            [nothing(), fence(LAST, 500)],
            fault(FenceFault::Exhausted, Some(LAST)),
        ),
        Case(
            "coming back: the number stays",
            [token(&ours(), 400), fence(7, 5_000)],
            propose(1_000, NOW),
            voted(granted(7), Some(7)),
            [token(&ours(), 1_000), fence(7, DAY + 1_000)],
        ),
        Case(
            "coming back, and somebody deleted the number: the proposal",
            [token(&ours(), 400), nothing()],
            propose(1_000, NOW - 9),
            voted(granted(NOW - 9), Some(NOW - 9)),
            [token(&ours(), 1_000), fence(NOW - 9, DAY + 1_000)],
        ),
    ]);
}

#[test]
fn confirm_raises_the_number_only_while_its_token_holds_the_lock() {
    let ours_at = |n| confirmed(Confirmation::Ours(number(n)));
    let row = |name, before: [Seen; 2], reply, after| Case(name, before, confirm(7), reply, after);
    let same = |name, keys: [Seen; 2], answer| row(name, keys.clone(), confirmed(answer), keys);
    let mine = || token(&ours(), 400);
    check(&[
        row("raised", [mine(), fence(3, 500)], ours_at(7), [mine(), fence(7, DAY + 1_000)]),
        row("no number", [mine(), nothing()], ours_at(7), [mine(), fence(7, DAY + 1_000)]),
        row("the same", [mine(), fence(7, 500)], ours_at(7), [mine(), fence(7, DAY + 1_000)]),
        row("never lowered", [mine(), fence(9, 500)], ours_at(9), [mine(), fence(9, DAY + 1_000)]),
        row(
            "the number's life is never lowered",
            [mine(), fence(3, 2 * DAY)],
            ours_at(7),
            [mine(), fence(7, 2 * DAY)],
        ),
        row(
            "nor left without an end",
            [mine(), fence(9, NO_END)],
            ours_at(9),
            [mine(), fence(9, DAY + 1_000)],
        ),
        row(
            "the lock has no end: that is not changed here",
            [token(&ours(), NO_END), fence(3, 500)],
            ours_at(7),
            [token(&ours(), NO_END), fence(7, DAY + 1_000)],
        ),
        same("gone", [nothing(), fence(3, 500)], Confirmation::Gone),
        same("gone, and no number", [nothing(), nothing()], Confirmation::Gone),
        same(
            "another's",
            [token(&theirs(), 500), fence(3, 500)],
            Confirmation::Other(held(bob(), Some(500))),
        ),
        same(
            "another library's",
            [text("1", NO_END), fence(3, 500)],
            Confirmation::Other(held(foreign(b"1"), None)),
        ),
        same(
            "a value of another type",
            [hash(500), fence(3, 500)],
            Confirmation::Other(held(hash_holder(), Some(500))),
        ),
        same("no true number", [mine(), text("x", 500)], Confirmation::Faulty(FenceFault::Value)),
        same("a type at the fence", [mine(), hash(500)], Confirmation::Faulty(FenceFault::Type)),
    ]);
}

#[test]
fn a_release_stores_the_number_of_its_lease() {
    let row = |name, before: Seen, after: Seen| {
        let reply = released(Release::Released(alice()));
        Case(name, [token(&ours(), 400), before], release_at(7), reply, [nothing(), after])
    };
    let other = |name, keys: [Seen; 2], release| {
        Case(name, keys.clone(), release_at(7), released(release), keys)
    };
    check(&[
        row("raised, for a day", fence(3, 500), fence(7, DAY)),
        row("raised, and its life not lowered", fence(3, 2 * DAY), fence(7, 2 * DAY)),
        row("none before", nothing(), fence(7, DAY)),
        row("never lowered: nothing is written", fence(9, 500), fence(9, 500)),
        row("the same: nothing is written", fence(7, 500), fence(7, 500)),
        row("no true number: released all the same", text("x", 500), text("x", 500)),
        row("a type at the fence: released all the same", hash(500), hash(500)),
        other("free", [nothing(), fence(3, 500)], Release::Free),
        other("another's", [token(&theirs(), 500), fence(3, 500)], Release::Other(bob())),
    ]);
}

/// What a damaged counter of another node says must not become this one's.
#[test]
fn a_number_far_ahead_is_neither_confirmed_nor_stored_by_a_release() {
    let confirm_row = |name, last: Seen, n, answer, after: Seen| {
        let keys = [token(&ours(), 400), last];
        Case(name, keys, confirm(n), confirmed(answer), [token(&ours(), 400), after])
    };
    let ahead = || Confirmation::Faulty(FenceFault::Ahead);
    let kept = || fence(3, 500);
    let far = NOW + HOUR + 1;
    check(&[
        confirm_row("no number", nothing(), far, ahead(), nothing()),
        confirm_row("confirm", kept(), far, ahead(), kept()),
        confirm_row("confirm the last there is", kept(), LAST, ahead(), kept()),
        confirm_row(
            "confirm at the bound",
            kept(),
            far - 1,
            Confirmation::Ours(number(far - 1)),
            fence(far - 1, DAY + 1_000),
        ),
        confirm_row(
            "its own numbers are ahead",
            fence(NOW + 5, 500),
            far + 4,
            Confirmation::Ours(number(far + 4)),
            fence(far + 4, DAY + 1_000),
        ),
        confirm_row(
            "ahead of those, too",
            fence(NOW + 5, 500),
            far + 5,
            ahead(),
            fence(NOW + 5, 500),
        ),
    ]);
    let row = |name, n, after: Seen| {
        let reply = released(Release::Released(alice()));
        Case(name, [token(&ours(), 400), kept()], release_at(n), reply, [nothing(), after])
    };
    check(&[
        row("release", far, kept()),
        row("release, the last there is", LAST, kept()),
        row("release at the bound", far - 1, fence(far - 1, DAY)),
    ]);
}

#[test]
fn the_clock_is_reported_exactly() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        for wall_us in [NOW, NOW + 1, 1_760_000_000_000_001, (1 << 53) + 1] {
            node.set_clock(wall_us);
            assert_eq!(node.ask(&Op::Clock), Ok(Reply::Clock { wall_us }), "{kind}");
        }
    }
}

/// Two nodes that numbered an attempt differently give the same number next, in one round trip.
#[test]
fn a_confirmation_or_a_release_makes_the_nodes_agree() {
    for kind in ServerKind::ALL {
        let mut nodes = [Node::start(kind), Node::start(kind)];
        put(&mut nodes[0], &[nothing(), fence(NOW + 3, 5_000)]);
        put(&mut nodes[1], &[nothing(), fence(NOW + 8, 5_000)]);
        let told = nodes.each_mut().map(|node| node.ask(&propose(1_000, NOW)));
        assert_eq!(told, [NOW + 4, NOW + 9].map(|n| Ok(voted(granted(n), Some(n)))), "{kind}");
        let told = nodes.each_mut().map(|node| node.ask(&confirm(NOW + 9)));
        let agreed = || Ok(confirmed(Confirmation::Ours(number(NOW + 9))));
        assert_eq!(told, [agreed(), agreed()], "{kind}");
        let told = nodes.each_mut().map(|node| node.ask(&release_at(NOW + 9)));
        assert_eq!(told.map(|told| told.is_ok()), [true; 2], "{kind}");
        let told = nodes.each_mut().map(|node| node.ask(&propose(1_000, NOW)));
        assert_eq!(told, [NOW + 10; 2].map(|n| Ok(voted(granted(n), Some(n)))), "{kind}");
    }
}

const HOUR: u64 = 3_600_000_000;
const LAST: u64 = FencingToken::MAX.get();
