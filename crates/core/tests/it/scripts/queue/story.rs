//! A lock goes round: alice holds it, and bob, carol and dave come for it in this order, each over
//! a connection of its own.

use super::*;

/// A client that asks for the lock, over the connection of its number.
struct Person {
    token: Token,
    connection: usize,
    ticket: Option<Ticket>,
}

impl Person {
    fn new(token: Token, connection: usize) -> Self {
        Self { token, connection, ticket: None }
    }

    /// Comes, or comes back; a channel may be named whose provisional grant has passed.
    fn come(&mut self, node: &mut Node, suspect: Option<Channel>) -> Reply {
        let entry = entry(live(self.connection));
        let place = Place { entry, ticket: self.ticket, previous: None, suspect };
        let token = self.token.clone();
        let op = Op::Acquire {
            key: lock(),
            token,
            ttl: ttl(10_000),
            proposal: None,
            place: Some(place),
        };
        let reply = node.ask(&op).unwrap();
        if let Reply::Queued { ticket, .. } = reply {
            self.ticket = Some(ticket);
        }
        reply
    }

    fn release(&self, node: &mut Node) -> Next {
        let (token, entries) = (self.token.clone(), vec![entry(live(self.connection))]);
        let op = Op::Release {
            key: lock(),
            token,
            entries,
            leave_tombstone: false,
            yield_ms: 0,
            number: None,
        };
        let Ok(Reply::Released { release: Release::Released(_), next }) = node.ask(&op) else {
            panic!("not released");
        };
        next
    }

    /// Waits behind so many.
    fn waits(&mut self, node: &mut Node, behind: u64) {
        let Reply::Queued { position, .. } = self.come(node, None) else { panic!("not queued") };
        assert_eq!(position, behind);
    }

    fn is_granted(&mut self, node: &mut Node, suspect: Option<Channel>) -> FencingToken {
        let Reply::Granted(number) = self.come(node, suspect) else { panic!("not granted") };
        number
    }
}

/// What was said since the last time.
fn told(node: &mut Node, listeners: &mut Listeners) -> Vec<String> {
    let mark = listeners.mark();
    node.cmd(&mark);
    listeners.published().into_iter().map(|(_, text)| text).collect()
}

fn number_at(fence: &Seen) -> FencingToken {
    let digits = String::from_utf8(fence.value.clone().unwrap()).unwrap();
    number(digits.parse().unwrap())
}

#[test]
fn a_lock_passes_from_waiter_to_waiter_in_ticket_order() {
    for kind in ServerKind::ALL {
        let mut node = Node::start(kind);
        let mut listeners = Listeners::start(&node.server);
        let (node, ears) = (&mut node, &mut listeners);
        let mut alice = Person::new(ours(), 0);
        let mut bob = Person::new(theirs(), 1);
        let mut carol = Person::new(carol(), 2);
        let mut dave = Person::new(dave(), 3);
        let texts = |notifications: &[Notification]| {
            notifications.iter().map(Notification::text).collect::<Vec<_>>()
        };

        let first = alice.is_granted(node, None);
        bob.waits(node, 0);
        // The clock steps back by an hour: later waiters are still behind.
        node.set_clock(NOW - 3_600_000_000);
        carol.waits(node, 1);
        dave.waits(node, 2);
        assert!(told(node, ears).is_empty(), "{kind}: nobody is told while it is held");

        // Alice releases: the lock is bob's for a provisional grant, and carol looks after him.
        assert_eq!(alice.release(node), Next::Waiter, "{kind}");
        let said = [grant(1, &bob.token), successor_watch(2, &carol.token, 1)];
        assert_eq!(told(node, ears), texts(&said), "{kind}");
        let seen = node.look(&[lock()]).0;
        assert_eq!(seen[0], token(&bob.token, 1_000), "{kind}: his for a provisional grant");
        let handed = number_at(&seen[1]);
        assert!(handed > first, "{kind}: under a new number");

        // Bob does not come. Carol does when the provisional grant is over, and is granted.
        carol.waits(node, 0);
        node.set_clock(NOW - 3_600_000_000 + 1_001_000);
        let third = carol.is_granted(node, Some(live(1)));
        assert!(third > handed, "{kind}");
        assert!(told(node, ears).is_empty(), "{kind}: nobody else is told");

        // Bob is back, too late, and has his place again: before dave, who came after him.
        bob.waits(node, 0);
        dave.waits(node, 1);
        assert_eq!(carol.release(node), Next::Waiter, "{kind}");
        let said = [grant(1, &bob.token), successor_watch(3, &dave.token, 1)];
        assert_eq!(told(node, ears), texts(&said), "{kind}");

        // He confirms: the full TTL, and the number of the hand-over.
        let handed = number_at(&node.look(&[lock()]).0[1]);
        let confirmed = bob.is_granted(node, None);
        assert_eq!(confirmed, handed, "{kind}");
        assert!(confirmed > third, "{kind}");
        assert_eq!(node.look(&[lock()]).0[0], token(&bob.token, 10_000), "{kind}");

        // Dave is the last, and leaves nothing but the number.
        assert_eq!(bob.release(node), Next::Waiter, "{kind}");
        assert_eq!(
            told(node, ears),
            texts(&[grant(3, &dave.token)]),
            "{kind}: nobody becomes the successor watch"
        );
        dave.is_granted(node, None);
        assert_eq!(dave.release(node), Next::Nobody, "{kind}");
        assert_eq!(node.look(&[lock()]).1, 1, "{kind}");
    }
}
