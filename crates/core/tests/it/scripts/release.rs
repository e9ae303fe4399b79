//! Releasing and inspecting a lock: release, forced or not, and inspect.

use tenure_core::{FenceFault, Inspection, Source};

use super::*;

#[test]
fn release_deletes_only_the_lock_of_its_token() {
    let kept = fence(7, 5_000);
    let row = |name, before: Seen, release_, after: Seen| {
        let reply = released(release_);
        Case(name, [before, kept.clone()], release(), reply, [after, kept.clone()])
    };
    let other = |name, seen: Seen, holder| row(name, seen.clone(), Release::Other(holder), seen);
    check(&[
        row("ours", token(&ours(), 500), Release::Released(alice()), nothing()),
        row("ours, for ever", token(&ours(), NO_END), Release::Released(alice()), nothing()),
        row("free: the second release", nothing(), Release::Free, nothing()),
        other("another's", token(&theirs(), 500), bob()),
        other("another library's", text("1", NO_END), foreign(b"1")),
        other("a value of another type", hash(NO_END), hash_holder()),
    ]);
}

#[test]
fn force_release_deletes_any_lock_and_leaves_data_alone_unless_asked() {
    let kept = || fence(7, 5_000);
    let row = |name, before, op: Op, release| {
        Case(name, [before, kept()], op, released(release), [nothing(), kept()])
    };
    let stays = |name, before: Seen, holder| {
        let keys = [before, kept()];
        Case(name, keys.clone(), force_release(), released(Release::Other(holder)), keys)
    };
    let any = || Op::ForceRelease { key: lock(), token: ours(), any: true };
    check(&[
        row("ours", token(&theirs(), 500), force_release(), Release::Released(bob())),
        row("others", text("1", NO_END), force_release(), Release::Released(foreign(b"1"))),
        row("nobody", nothing(), force_release(), Release::Free),
        stays("an empty value", text("", 500), foreign(b"")),
        stays("a value of another type", hash(NO_END), hash_holder()),
        stays("a long value", text([b'x'; 256], 500), foreign(&[b'x'; 256])),
        stays("JSON", text("{}", 500), foreign(b"{}")),
        row("any: empty", text("", 500), any(), Release::Released(foreign(b""))),
        row("any: of another type", hash(NO_END), any(), Release::Released(hash_holder())),
        row("any: nobody", nothing(), any(), Release::Free),
    ]);
}

#[test]
fn inspect_reports_and_changes_nothing() {
    let row = |name, keys: [Seen; 2], held, last_number: Option<u64>| {
        let last_number = last_number.map(number);
        let fault = match &keys[1] {
            seen if *seen == text("x", 500) => Some(FenceFault::Value),
            seen if *seen == hash(500) => Some(FenceFault::Type),
            seen if *seen == fence(LAST, 500) => Some(FenceFault::Exhausted),
            _ => None,
        };
        let told = Inspection {
            held,
            last_number,
            fault,
            waiters: Vec::new(),
            waiting: Some(0),
            wall_us: NOW,
            source: Source::Primary,
        };
        Case(name, keys.clone(), inspect(), Reply::Inspected(told), keys)
    };
    check(&[
        row("never held", [nothing(), nothing()], None, None),
        row("held before", [nothing(), fence(7, 500)], None, Some(7)),
        row(
            "held",
            [token(&theirs(), 500), fence(NOW, 900)],
            Some(held(bob(), Some(500))),
            Some(NOW),
        ),
        row(
            "another library",
            [text("1", NO_END), nothing()],
            Some(held(foreign(b"1"), None)),
            None,
        ),
        row("a hash", [hash(500), nothing()], Some(held(hash_holder(), Some(500))), None),
        row("no number at the fence key", [nothing(), text("x", 500)], None, None),
        row("a hash at the fence key", [nothing(), hash(500)], None, None),
        row("the last number", [nothing(), fence(LAST, 500)], None, Some(LAST)),
    ]);
}

const LAST: u64 = FencingToken::MAX.get();
