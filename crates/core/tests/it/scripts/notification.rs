//! The notification: waiters for a lock of several nodes learn of its release.

use tenure_core::Channel;
use tenure_testkit::{Raw, Value};

use super::*;

/// A connection that listens to the channel of the lock.
fn listener(node: &Node) -> Raw {
    let mut raw = node.server.raw();
    raw.cmd(&[b"SUBSCRIBE", Channel::of_lock(&lock()).as_bytes()]);
    raw
}

/// How many notifications came that were not counted before. A server answers in order, so all of
/// them are in front of the answer to PING.
fn notifications(raw: &mut Raw) -> usize {
    raw.send(&["PING", "x"]);
    let mut notifications = 0;
    loop {
        let message = raw.receive();
        match message.array() {
            [kind, ..] if kind.text() == Some("pong") => return notifications,
            [_, channel, Value::Bulk(text)] => {
                assert_eq!(channel.bytes(), Some(Channel::of_lock(&lock()).as_bytes()));
                assert_eq!(text, b"f");
                notifications += 1;
            }
            _ => panic!("neither a message nor the answer to PING: {message:?}"),
        }
    }
}

fn release_of_lease() -> Op {
    release_under(Some(number(7)))
}

#[test]
fn every_subscriber_is_notified_of_a_release() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let mut listeners = [listener(&node), listener(&node)];
        for (name, before, op, told) in [
            ("a lease", token(&ours(), 500), release_of_lease(), 1),
            ("by force", token(&theirs(), 500), force_release(), 1),
            ("by force, another library's", text("1", NO_END), force_release(), 1),
            ("by force, a value of another type", hash(500), force_release(), 0),
            ("an attempt that is undone", token(&ours(), 500), release(), 0),
            ("another's", token(&theirs(), 500), release_of_lease(), 0),
            ("free", nothing(), release_of_lease(), 0),
            ("free, by force", nothing(), force_release(), 0),
        ] {
            node.reset();
            put(&mut node, &[before, fence(7, 5_000)]);
            assert!(node.ask(&op).is_ok(), "{kind}: {name}");
            assert_eq!(listeners.each_mut().map(notifications), [told; 2], "{kind}: {name}");
        }
    }
}

#[test]
fn a_user_without_publish_can_still_release() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let mut listener = listener(&node);
        for rule in ["-publish", "-pubsub", "resetchannels"] {
            node.reset();
            put(&mut node, &[token(&ours(), 500), fence(7, 5_000)]);
            let user = ["ACL", "SETUSER", "u", "on", "nopass", "~*", "&*", "+@all", rule];
            assert!(node.cmd(&user).is_ok() && node.cmd(&["AUTH", "u", "x"]).is_ok());
            let told = released(Release::Released(alice()));
            assert_eq!(node.ask(&release_of_lease()), Ok(told), "{kind}: {rule}");
            assert_eq!(node.look(&[lock()]).0, [nothing(), fence(7, 5_000)], "{kind}: {rule}");
            assert!(node.cmd(&["AUTH", "default", "x"]).is_ok());
        }
        assert_eq!(notifications(&mut listener), 0, "{kind}");
    }
}
