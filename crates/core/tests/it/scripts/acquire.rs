//! Taking a lock: acquire, resume, steal.

use tenure_core::Reply;

use super::*;

#[test]
fn acquire_takes_what_is_free() {
    check(&[
        Case(
            "free: numbered by the clock",
            [nothing(), nothing()],
            acquire(1_000),
            granted(NOW),
            [token(&ours(), 1_000), fence(NOW, DAY + 1_000)],
        ),
        Case(
            "held before: still numbered by the clock, which has moved on",
            [nothing(), fence(NOW - 5, 777)],
            acquire(1_000),
            granted(NOW),
            [token(&ours(), 1_000), fence(NOW, DAY + 1_000)],
        ),
        Case(
            "held before, and the clock was stepped back: one more than the last number",
            [nothing(), fence(NOW + 5, 777)],
            acquire(1_000),
            granted(NOW + 6),
            [token(&ours(), 1_000), fence(NOW + 6, DAY + 1_000)],
        ),
        Case(
            "somebody took the fence key's end away: it has one again",
            [nothing(), fence(3, NO_END)],
            acquire(10),
            granted(NOW),
            [token(&ours(), 10), fence(NOW, DAY + 10)],
        ),
        Case(
            "the longest TTL",
            [nothing(), nothing()],
            acquire(Ttl::MAX_MS),
            granted(NOW),
            [token(&ours(), 1 << 53), fence(NOW, (1 << 53) + DAY)],
        ),
    ]);
}

#[test]
fn acquire_by_the_holder_raises_the_ttl_and_keeps_the_number() {
    check(&[
        Case(
            "less left than asked for: raised, and the number's life with it",
            [token(&ours(), 400), fence(7, 5_000)],
            acquire(1_000),
            granted(7),
            [token(&ours(), 1_000), fence(7, DAY + 1_000)],
        ),
        Case(
            "more left than asked for: never lowered",
            [token(&ours(), 9_000), fence(7, 5_000)],
            acquire(1_000),
            granted(7),
            [token(&ours(), 9_000), fence(7, DAY + 1_000)],
        ),
        Case(
            "somebody took its end away: it has one again",
            [token(&ours(), NO_END), fence(7, 5_000)],
            acquire(1_000),
            granted(7),
            [token(&ours(), 1_000), fence(7, DAY + 1_000)],
        ),
        Case(
            "somebody deleted the number: a new one, and the TTL raised",
            [token(&ours(), 400), nothing()],
            acquire(1_000),
            granted(NOW),
            [token(&ours(), 1_000), fence(NOW, DAY + 1_000)],
        ),
        Case(
            "somebody deleted the number: a new one, and the TTL not lowered",
            [token(&ours(), 9_000), nothing()],
            acquire(1_000),
            granted(NOW),
            [token(&ours(), 9_000), fence(NOW, DAY + 1_000)],
        ),
    ]);
}

/// What may hold a lock, and how the holder is reported.
fn others() -> Vec<(&'static str, Seen, Held)> {
    vec![
        ("a client of ours", token(&theirs(), 500), held(bob(), Some(500))),
        ("a client of ours, for ever", token(&theirs(), NO_END), held(bob(), None)),
        ("another library", text("d41d8cd9", 500), held(foreign(b"d41d8cd9"), Some(500))),
        ("another library, for ever", text("1", NO_END), held(foreign(b"1"), None)),
        ("an empty value", text("", 500), held(foreign(b""), Some(500))),
        ("a long value", text([b'x'; 70_000], 500), held(foreign(&[b'x'; 256]), Some(500))),
        ("JSON", text("{}", NO_END), held(foreign(b"{}"), None)),
        ("a list of JSON", text("[1]", 500), held(foreign(b"[1]"), Some(500))),
        ("XML", text("<a/>", 500), held(foreign(b"<a/>"), Some(500))),
        ("bytes", text(b"\0\r\n\xff", 500), held(foreign(b"\0\r\n\xff"), Some(500))),
        ("a hash (Redisson)", hash(500), held(hash_holder(), Some(500))),
        ("a hash, for ever", hash(NO_END), held(hash_holder(), None)),
    ]
}

#[test]
fn acquire_and_resume_leave_the_lock_of_another_alone() {
    for op in [acquire(60_000), resume(60_000)] {
        let row = |(name, holder, held): (_, Seen, _)| {
            let keys = [holder, fence(7, 5_000)];
            Case(name, keys.clone(), op.clone(), Reply::Held(held), keys)
        };
        check(&others().into_iter().map(row).collect::<Vec<_>>());
    }
}

#[test]
fn steal_takes_any_lock_and_leaves_data_alone_unless_asked() {
    let row = |name, holder, op: Op| {
        let after = [token(&ours(), 1_000), fence(NOW + 2, DAY + 1_000)];
        Case(name, [holder, fence(NOW + 1, 5_000)], op, granted(NOW + 2), after)
    };
    let any = || Op::Steal { key: lock(), token: ours(), ttl: ttl(1_000), any: true };
    let mut rows = vec![
        row("nobody", nothing(), steal(1_000)),
        row("itself", token(&ours(), 9_000), steal(1_000)),
        row("at the bound", text([b'x'; 255], 500), steal(1_000)),
    ];
    for (name, holder, told) in others() {
        rows.push(row(name, holder.clone(), any()));
        rows.push(if told.holder.may_be_lock() {
            row(name, holder, steal(1_000))
        } else {
            let keys = [holder, fence(NOW + 1, 5_000)];
            Case(name, keys.clone(), steal(1_000), Reply::Held(told), keys)
        });
    }
    check(&rows);
    assert_eq!(others().iter().filter(|(.., told)| !told.holder.may_be_lock()).count(), 7);
}

#[test]
fn resume_continues_a_lease_and_never_creates_one() {
    check(&[
        Case(
            "ended: nothing is created",
            [nothing(), fence(7, 5_000)],
            resume(1_000),
            Reply::Free,
            [nothing(), fence(7, 5_000)],
        ),
        Case(
            "held: raised, with its number",
            [token(&ours(), 400), fence(7, 5_000)],
            resume(1_000),
            granted(7),
            [token(&ours(), 1_000), fence(7, DAY + 1_000)],
        ),
        Case(
            "held: never lowered",
            [token(&ours(), 9_000), fence(7, 5_000)],
            resume(1_000),
            granted(7),
            [token(&ours(), 9_000), fence(7, DAY + 1_000)],
        ),
    ]);
}
