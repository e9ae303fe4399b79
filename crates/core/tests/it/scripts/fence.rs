//! Fencing numbers: the faults of a counter, and how numbers outlive what carries them.

use tenure_core::FenceFault;

use super::*;

/// A fault is a typed answer; no lock is left behind, and nothing was written at all.
#[test]
fn an_invalid_counter_grants_nothing_and_stays_unchanged() {
    let mut faults = vec![
        (hash(NO_END), FenceFault::Type),
        (hash(500), FenceFault::Type),
        (fence(LAST, 500), FenceFault::Exhausted),
        (fence(LAST + 1, 500), FenceFault::Value),
        (fence(LAST + 2, 500), FenceFault::Value),
    ];
    let no_numbers =
        ["", " ", "x", "-1", "+1", " 1", "1 ", "1\n", "1e3", "0x10", "1.0", "nan", "inf"];
    let not_ours = ["0", "00", "07", "0000000000000007"];
    let too_long = ["00000000000000001", "12345678901234567", "99999999999999999999999"];
    for value in no_numbers.iter().chain(&not_ours).chain(&too_long) {
        faults.push((text(value, 500), FenceFault::Value));
    }
    let mut cases = Vec::new();
    for (counter, fault) in faults {
        let mut case = |name, holder: Seen, op| {
            let keys = [holder, counter.clone()];
            cases.push(Case(name, keys.clone(), op, Reply::Faulty(fault), keys));
        };
        case("steal from another", token(&theirs(), 500), steal(1_000));
        case("steal what is free", nothing(), steal(1_000));
        case("acquire", nothing(), acquire(1_000));
        // The holder keeps the number it has: only a number that cannot be read is a fault to it.
        if fault != FenceFault::Exhausted {
            case("come back", token(&ours(), 500), acquire(1_000));
            case("resume", token(&ours(), 500), resume(1_000));
        }
    }
    check(&cases);
}

#[test]
fn numbers_reach_the_maximum_and_never_overflow() {
    let row = |name, last: Seen, granted_: u64| {
        Case(
            name,
            [nothing(), last],
            acquire(10),
            granted(granted_),
            [token(&ours(), 10), fence(granted_, DAY + 10)],
        )
    };
    check(&[
        row("the first", fence(1, 500), NOW),
        row("the last but one", fence(LAST - 2, 500), LAST - 1),
        row("the last", fence(LAST - 1, 500), LAST),
        Case(
            "the holder of the last one keeps it",
            [token(&ours(), 5), fence(LAST, 500)],
            acquire(10),
            granted(LAST),
            [token(&ours(), 10), fence(LAST, DAY + 10)],
        ),
    ]);
}

#[test]
fn a_number_outlives_its_lease() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let day = u64::try_from(DAY).unwrap();
        assert_eq!(node.ask(&acquire(1_000)), Ok(granted(NOW)), "{kind}");
        // The lock is there up to its end, and gone a millisecond later; the number stays.
        node.set_clock(NOW + 1_000_000);
        assert_eq!(node.look(&[lock()]).0, [token(&ours(), 0), fence(NOW, DAY)], "{kind}");
        node.set_clock(NOW + 1_001_000);
        assert_eq!(node.look(&[lock()]).0, [nothing(), fence(NOW, DAY - 1)], "{kind}");
        // It goes a day after the lease, and leaves nothing.
        node.set_clock(NOW + 1_000_000 + day * 1_000);
        assert_eq!(node.look(&[lock()]), (vec![nothing(), fence(NOW, 0)], 1), "{kind}");
        node.set_clock(NOW + 1_001_000 + day * 1_000);
        assert_eq!(node.look(&[lock()]), (vec![nothing(), nothing()], 0), "{kind}");
    }
}

#[test]
fn numbers_grow_whatever_keys_are_lost() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let mut last = number(0);
        let mut next = |node: &mut Node, what: &str| {
            let Ok(Reply::Granted(number)) = node.ask(&acquire(1_000)) else {
                panic!("{kind}: {what}: not granted");
            };
            assert!(number > last, "{kind}: {what}: {number} after {last}");
            last = number;
        };
        next(&mut node, "the first");
        node.cmd(&[b"DEL", lock().as_bytes()]);
        next(&mut node, "the lock was deleted, at the same microsecond");
        node.ask(&release()).unwrap();
        next(&mut node, "the lock was released, at the same microsecond");
        node.set_clock(NOW + 2_000_000);
        next(&mut node, "the lock has ended");
        node.ask(&release()).unwrap();
        node.set_clock(NOW - 3_600_000_000);
        next(&mut node, "the clock was stepped back by an hour");
        // What carries the number is lost: the clock alone makes the next one larger.
        node.set_clock(NOW + 2_001_000);
        node.cmd(&["FLUSHALL"]);
        next(&mut node, "the server was flushed");
        node.set_clock(NOW + 3 * 86_400_000_000);
        assert_eq!(node.look(&[lock()]).1, 0, "{kind}: everything has ended");
        next(&mut node, "the number itself has ended");
    }
}

const LAST: u64 = FencingToken::MAX.get();
