//! A queue on a server that is full, that forbids a command, or where something else stands.

use tenure_core::FenceFault;

use super::*;

/// Alice holds the lock, and carol waits.
fn before() -> [Seen; 3] {
    let waiting = [waits(5, &carol(), live(1))];
    [token(&ours(), 500), fence(7, 5_000), queue(&waiting, 70_000)]
}

#[test]
fn a_server_out_of_memory_hands_locks_over_and_accepts_no_waiter() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let _listeners = Listeners::start(&node.server);
        put(&mut node, &before());
        assert!(node.cmd(&["CONFIG", "SET", "maxmemory", "1"]).is_ok());

        let handed = Reply::Released { release: Release::Released(alice()), next: Next::Waiter };
        assert_eq!(node.ask(&release()), Ok(handed), "{kind}");
        let [lock_, number] = served(&carol());
        let keys = vec![lock_, number, nothing()];
        assert_eq!(node.look_at_all(&[lock()]), (keys.clone(), 2), "{kind}");

        let refused = node.ask(&join(first_time())).unwrap_err();
        assert!(refused.starts_with("OOM"), "{kind}: {refused}");
        assert_eq!(node.look_at_all(&[lock()]), (keys.clone(), 2), "{kind}: nothing is left");

        // A tombstone must be written even so: it stands for a command that may still come.
        let op = Op::Release {
            key: lock(),
            token: ours(),
            entries: Vec::new(),
            leave_tombstone: true,
            yield_ms: 0,
            number: None,
        };
        assert!(matches!(node.ask(&op), Ok(Reply::Released { .. })), "{kind}");
        let grave = queue(&[tombstone(&ours(), 0)], EXTRA);
        assert_eq!(node.look_at_all(&[lock()]).0[2], grave, "{kind}");
    }
}

#[test]
fn a_user_without_a_queue_command_can_still_release() {
    let [_, number, waiting] = before();
    let given_up = |queue| (Next::Nobody, [nothing(), number.clone(), queue]);
    let [lock_, number_] = served(&carol());
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let _listeners = Listeners::start(&node.server);
        for (rule, (next, after)) in [
            // No waiter can be notified, so none is served: waiters poll by themselves.
            ("-publish", given_up(nothing())),
            ("-pubsub", given_up(nothing())),
            ("resetchannels", given_up(nothing())),
            ("-zpopmin", given_up(waiting.clone())),
            ("-exists", (Next::Waiter, [lock_.clone(), number_.clone(), nothing()])),
        ] {
            node.reset();
            put(&mut node, &before());
            // A user of its own: the subscribers must not lose their rights with it.
            let user =
                ["ACL", "SETUSER", "poor", "reset", "on", "nopass", "~*", "&*", "+@all", rule];
            assert!(node.cmd(&user).is_ok(), "{kind}: {rule}");
            assert!(node.cmd(&["AUTH", "poor", "x"]).is_ok());
            let said = node.ask(&release());
            assert!(node.cmd(&["AUTH", "default", "x"]).is_ok());
            let told = Reply::Released { release: Release::Released(alice()), next };
            assert_eq!(said, Ok(told), "{kind}: {rule}");
            assert_eq!(node.look_at_all(&[lock()]).0, after, "{kind}: {rule}");
        }
    }
}

/// A caller whose release succeeded will not repeat it, so only a complete release succeeds.
#[test]
fn a_release_fails_where_its_tombstone_is_refused() {
    let leave_tombstone = Op::Release {
        key: lock(),
        token: ours(),
        entries: Vec::new(),
        leave_tombstone: true,
        yield_ms: 0,
        number: None,
    };
    let [lock_, number, waiting] = before();
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        for holder in [nothing(), token(&theirs(), 500)] {
            node.reset();
            put(&mut node, &[holder, number.clone(), waiting.clone()]);
            assert!(node.cmd(&["CONFIG", "SET", "min-replicas-to-write", "1"]).is_ok());
            let cut_off = node.ask(&leave_tombstone).unwrap_err();
            assert!(node.cmd(&["CONFIG", "SET", "min-replicas-to-write", "0"]).is_ok());
            assert!(cut_off.starts_with("NOREPLICAS"), "{kind}: {cut_off}");

            assert!(node.cmd(&["ACL", "SETUSER", "default", "-zadd"]).is_ok());
            let forbidden = node.ask(&leave_tombstone);
            assert!(node.cmd(&["ACL", "SETUSER", "default", "+@all"]).is_ok());
            assert!(forbidden.is_err(), "{kind}: {forbidden:?}");
        }
        // The holder's own lock is given up even so: others wait for it.
        node.reset();
        put(&mut node, &[lock_.clone(), number.clone()]);
        assert!(node.cmd(&["ACL", "SETUSER", "default", "-zadd"]).is_ok());
        assert_eq!(node.ask(&leave_tombstone), Ok(released(Release::Released(alice()))), "{kind}");
        assert!(node.cmd(&["ACL", "SETUSER", "default", "+@all"]).is_ok());
        assert_eq!(node.look(&[lock()]).0, [nothing(), number.clone()], "{kind}");
    }
}

#[test]
fn a_value_that_is_no_queue_stops_joins_and_no_releases() {
    let number = || fence(7, DAY);
    let free = || nothing();
    let mine = |pttl| token(&ours(), pttl);
    let bobs = || token(&theirs(), 500);
    for odd in [hash(NO_END), hash(500), text("x", 500)] {
        let row = |name, lock, op, reply, after| {
            let keys = |lock| [lock, number(), odd.clone()];
            Case(name, keys(lock), op, reply, keys(after), vec![])
        };
        let fault = || Reply::Faulty(FenceFault::Queue);
        let leave_tombstone = Op::Release {
            key: lock(),
            token: ours(),
            entries: vec![entry(live(0))],
            leave_tombstone: true,
            yield_ms: 0,
            number: None,
        };
        let done = || released(Release::Released(alice()));
        check(&[
            row("a try", free(), acquire(10), fault(), free()),
            row("a try, held", bobs(), acquire(10), fault(), bobs()),
            row("a waiter", free(), join(first_time()), fault(), free()),
            row("a waiter, held", bobs(), join(first_time()), fault(), bobs()),
            row("the holder itself", mine(500), acquire(1_000), granted(7), mine(1_000)),
            row("release", mine(500), release(), done(), free()),
            row("release with a tombstone", mine(500), leave_tombstone, done(), free()),
            row("by force", mine(500), force_release(), fault(), mine(500)),
            row("stolen", bobs(), steal(1_000), fault(), bobs()),
        ]);
    }
}
