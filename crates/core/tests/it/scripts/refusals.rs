//! What the scripts and the server refuse, and that nothing is left of it.

use tenure_core::RenewalAnswer;
use tenure_core::script::Call;

use super::*;

/// A key without an end would be held forever, so the script itself looks at the TTL.
#[test]
fn an_invalid_ttl_is_refused_by_the_script() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let before = [token(&ours(), 500), fence(7, 500)];
        for ttl in ["0", "-1", "", "x", "nan", "-inf", "0x0", "1s"] {
            for (op, held) in [(acquire(10), false), (steal(10), true), (resume(10), true)] {
                node.reset();
                if held {
                    put(&mut node, &before);
                }
                let kept = node.look(&[lock()]);
                let mut call = Call::new(&op, 1);
                call.args[2] = ttl.into();
                let command = node.command(&call);
                let reply = node.cmd(&command);
                assert!(reply.error().is_some(), "{kind}: {op:?} with TTL {ttl:?}: {reply:?}");
                assert_eq!(node.look(&[lock()]), kept, "{kind}: {op:?} with TTL {ttl:?}");
            }
            // Of a batch, only the one renewal is refused.
            node.reset();
            put(&mut node, &before);
            let good = RenewRequest { key: lock(), token: ours(), ttl: super::ttl(600) };
            let op = Op::Renew(vec![good.clone(), good]);
            let mut call = Call::new(&op, 1);
            call.args[2] = ttl.into();
            let command = node.command(&call);
            let reply = node.cmd(&command);
            let Ok(Reply::Renewed(answers)) = crate::node::read(&op, 1, reply) else {
                panic!("{kind}: TTL {ttl:?}: no renewals");
            };
            assert!(matches!(answers[0], RenewalAnswer::Refused(_)), "{kind}: {ttl:?}");
            assert_eq!(answers[1], RenewalAnswer::Renewed, "{kind}: {ttl:?}");
        }
        // What Lua takes for a number above 0 and the server does not: no lock is left either.
        for ttl in ["1e3", "1.5", "inf"] {
            node.reset();
            let mut call = Call::new(&acquire(10), 1);
            call.args[2] = ttl.into();
            let command = node.command(&call);
            let reply = node.cmd(&command);
            assert!(reply.error().is_some(), "{kind}: TTL {ttl:?}: {reply:?}");
            assert_eq!(node.look(&[lock()]).0[0], nothing(), "{kind}: TTL {ttl:?}");
        }
    }
}

#[test]
fn a_server_out_of_memory_grants_nothing_and_still_renews() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        put(&mut node, &[token(&ours(), 500), fence(7, 500)]);
        assert!(node.cmd(&["CONFIG", "SET", "maxmemory", "1"]).is_ok());

        let renewed = Reply::Renewed(vec![RenewalAnswer::Renewed]);
        assert_eq!(node.ask(&renew(1_000)), Ok(renewed), "{kind}");
        let raised = [token(&ours(), 1_000), fence(7, DAY + 1_000)];
        assert_eq!(node.look(&[lock()]).0, raised, "{kind}");
        assert_eq!(node.ask(&acquire(2_000)), Ok(granted(7)), "{kind}: coming back");

        let by_force = node.ask(&steal(1_000)).unwrap_err();
        assert!(by_force.starts_with("OOM"), "{kind}: {by_force}");
        let kept = [token(&ours(), 2_000), fence(7, DAY + 1_000)];
        assert_eq!(node.look(&[lock()]).0, kept, "{kind}: nothing is stolen by half");

        assert!(matches!(node.ask(&release()), Ok(Reply::Released { .. })), "{kind}");
        let refused = node.ask(&acquire(1_000)).unwrap_err();
        assert!(refused.starts_with("OOM"), "{kind}: {refused}");
        let left = (vec![nothing(), fence(7, DAY + 1_000)], 1);
        assert_eq!(node.look(&[lock()]), left, "{kind}: no lock, and the same number");
    }
}

#[test]
fn a_user_without_a_command_gets_an_error_and_leaves_nothing() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let held = [token(&ours(), 500), fence(7, 500)];
        let free = [nothing(), nothing()];
        for (command, before, op) in [
            ("getrange", &free, acquire(1_000)),
            ("exists", &free, acquire(1_000)),
            ("time", &free, acquire(1_000)),
            ("set", &free, acquire(1_000)),
            ("set", &held, steal(1_000)),
            ("pexpire", &held, acquire(1_000)),
            ("pexpire", &held, renew(1_000)),
            ("pttl", &held, renew(1_000)),
            ("del", &held, release()),
            ("del", &held, force_release()),
            ("getrange", &held, release()),
            ("getrange", &held, inspect()),
            ("getrange", &held, confirm()),
            ("set", &held, confirm()),
            ("time", &held, confirm()),
        ] {
            node.reset();
            put(&mut node, before);
            assert!(node.cmd(&["ACL", "SETUSER", "default", &format!("-{command}")]).is_ok());
            let said = node.ask(&op);
            assert!(node.cmd(&["ACL", "SETUSER", "default", "+@all"]).is_ok());
            let words = said.unwrap_err();
            // Inside a script, no server says NOPERM.
            let start = match kind {
                ServerKind::Redis70 => "ERR The user executing the script can't run this command",
                ServerKind::Valkey81 | ServerKind::Valkey91 => "ERR ACL failure in script: ",
            };
            assert!(words.starts_with(start), "{kind}: {op:?} without {command}: {words}");
            assert_eq!(node.look(&[lock()]).0, *before, "{kind}: {op:?} without {command}");
        }
        // Without GETRANGE, a renewal is refused in its own place.
        put(&mut node, &held);
        node.cmd(&["ACL", "SETUSER", "default", "-getrange"]);
        let Ok(Reply::Renewed(answers)) = node.ask(&renew(1_000)) else {
            panic!("{kind}: no renewals");
        };
        assert!(matches!(answers[..], [RenewalAnswer::Refused(_)]), "{kind}: {answers:?}");
    }
}

/// The right to the lock's key alone is not enough, and one key too many refuses a whole batch.
#[test]
fn a_user_without_a_key_gets_an_error_before_anything_runs() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let held = [token(&ours(), 500), fence(7, 500)];
        put(&mut node, &held);
        let free = LockKey::new("order:8").unwrap();
        let renewal = |key| RenewRequest { key, token: ours(), ttl: ttl(1_000) };
        let batch = Op::Renew(vec![renewal(lock()), renewal(free)]);
        for (keys, op) in [("~order:*", acquire(1_000)), ("~*order:7*", batch)] {
            node.cmd(&["ACL", "SETUSER", "default", "resetkeys", keys]);
            let words = node.ask(&op).unwrap_err();
            node.cmd(&["ACL", "SETUSER", "default", "allkeys"]);
            assert!(words.starts_with("NOPERM"), "{kind}: {op:?} with {keys}: {words}");
            assert_eq!(node.look(&[lock()]).0, held, "{kind}: {op:?} with {keys}");
        }
    }
}

/// With `min-replicas-to-write`, a primary that is cut off refuses every write.
#[test]
fn a_primary_without_its_replicas_grants_nothing() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let held = [token(&ours(), 500), fence(7, 500)];
        for (before, op) in [
            ([nothing(), fence(7, 500)], acquire(1_000)),
            (held.clone(), acquire(1_000)),
            (held.clone(), resume(1_000)),
            (held.clone(), steal(1_000)),
            (held.clone(), confirm()),
            (held.clone(), renew(1_000)),
            (held.clone(), release()),
            (held.clone(), force_release()),
        ] {
            node.reset();
            put(&mut node, &before);
            assert!(node.cmd(&["CONFIG", "SET", "min-replicas-to-write", "1"]).is_ok());
            let words = node.ask(&op).unwrap_err();
            assert!(node.cmd(&["CONFIG", "SET", "min-replicas-to-write", "0"]).is_ok());
            assert!(words.starts_with("NOREPLICAS"), "{kind}: {op:?}: {words}");
            assert_eq!(node.look(&[lock()]).0, before, "{kind}: {op:?}");
        }
    }
}

/// A replica would otherwise say that a lock is free which has not been replicated yet.
#[test]
fn a_replica_answers_nothing_that_may_be_stale() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        // Nobody listens there: the server keeps what it has, and waits.
        assert!(node.cmd(&["REPLICAOF", "127.0.0.1", "1"]).is_ok());
        for op in [
            acquire(1_000),
            resume(1_000),
            steal(1_000),
            confirm(),
            renew(1_000),
            release(),
            force_release(),
            inspect(),
        ] {
            let words = node.ask(&op).unwrap_err();
            assert!(words.contains("READONLY"), "{kind}: {op:?}: {words}");
        }
    }
}

/// Reproduces: a primary is demoted; in the same millisecond a holder asks for what it has already,
/// so that nothing has to be written, and nothing is refused by itself.
#[test]
fn a_demoted_primary_confirms_no_lease() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        put(&mut node, &[token(&ours(), 1_000), fence(7, 90_000_000)]);
        assert!(node.cmd(&["REPLICAOF", "127.0.0.1", "1"]).is_ok());
        for op in [acquire(1_000), resume(1_000), confirm(), renew(1_000)] {
            let words = node.ask(&op).unwrap_err();
            assert!(words.contains("READONLY"), "{kind}: {op:?}: {words}");
        }
    }
}

/// Asks for more than the last number of the tables here.
fn confirm() -> Op {
    Op::Confirm { key: lock(), token: ours(), ttl: ttl(1_000), number: number(9) }
}
