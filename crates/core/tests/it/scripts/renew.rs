//! Renewing leases, one or many at once.

use tenure_core::RenewalAnswer;

use super::*;

#[test]
fn renew_raises_the_ttl_of_a_lock_that_the_token_holds() {
    // The fence key of a lease of 60 s has 86,460 s, and half of that is 43,230 s.
    let row = |name, before, after| {
        let reply = Reply::Renewed(vec![RenewalAnswer::Renewed]);
        Case(name, before, renew(60_000), reply, after)
    };
    let fresh = fence(7, DAY);
    let mine = |pttl| token(&ours(), pttl);
    check(&[
        row("raised", [mine(400), fresh.clone()], [mine(60_000), fresh.clone()]),
        row("never lowered", [mine(60_001), fresh.clone()], [mine(60_001), fresh.clone()]),
        row("for ever", [mine(NO_END), fresh.clone()], [mine(60_000), fresh]),
        row(
            "half of the fence's life",
            [mine(9), fence(7, 43_230_000)],
            [mine(60_000), fence(7, 43_230_000)],
        ),
        row(
            "less than half",
            [mine(9), fence(7, 43_229_999)],
            [mine(60_000), fence(7, DAY + 60_000)],
        ),
        row(
            "a fence for ever",
            [mine(9), fence(7, NO_END)],
            [mine(60_000), fence(7, DAY + 60_000)],
        ),
        row("no fence: not made", [mine(9), nothing()], [mine(60_000), nothing()]),
        row(
            "what stands at the fence key does not matter",
            [mine(9), hash(50)],
            [mine(60_000), hash(DAY + 60_000)],
        ),
    ]);
}

#[test]
fn renew_leaves_other_locks_alone() {
    let row = |name, lock, answer| {
        // Its fence is not touched either, short as its life is.
        let keys = [lock, fence(7, 50)];
        Case(name, keys.clone(), renew(60_000), Reply::Renewed(vec![answer]), keys)
    };
    check(&[
        row("gone", nothing(), RenewalAnswer::Gone),
        row("another's", token(&theirs(), 50), RenewalAnswer::Other(bob())),
        row("another library's", text("1", NO_END), RenewalAnswer::Other(foreign(b"1"))),
        row("a hash", hash(NO_END), RenewalAnswer::Other(hash_holder())),
    ]);
}

#[test]
fn each_lease_of_a_full_batch_is_renewed_by_its_own_ttl() {
    let name = |i: u64| LockKey::new(format!("order:{i}")).unwrap();
    let token = |i: u64| Token::new(u128::from(i), &HolderLabel::new("alice/1").unwrap());
    let renewals =
        (0..256).map(|i| RenewRequest { key: name(i), token: token(i), ttl: ttl(1_000 + i) });
    let batch = Op::Renew(renewals.collect());
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let mut expected = Vec::new();
        // Every third is held by its token, every third by another, and every third is free.
        for i in 0..256 {
            let holder = match i % 3 {
                0 => token(i),
                1 => theirs(),
                _ => continue,
            };
            let op = Op::Acquire {
                key: name(i),
                token: holder,
                ttl: ttl(100),
                proposal: None,
                place: None,
            };
            assert_eq!(node.ask(&op), Ok(granted(NOW)), "{kind}");
        }
        for i in 0..256 {
            expected.push(match i % 3 {
                0 => RenewalAnswer::Renewed,
                1 => RenewalAnswer::Other(bob()),
                _ => RenewalAnswer::Gone,
            });
        }
        assert_eq!(node.ask(&batch), Ok(Reply::Renewed(expected)), "{kind}");
        for i in 0..256 {
            let left =
                [i64::try_from(1_000 + i).unwrap(), 100, -2][usize::try_from(i % 3).unwrap()];
            assert_eq!(node.cmd(&[b"PTTL", name(i).as_bytes()]).int(), left, "{kind}: {i}");
        }
    }
}
