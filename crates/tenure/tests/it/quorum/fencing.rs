//! Fencing numbers of several servers that are killed, stopped, full and cut off.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use tenure::{FencingToken, blocking::Client};
use tenure_testkit::{Proxy, Server, ServerKind, eventually, scale, unique_key};

use super::Nodes;
use crate::{LIMIT, secs, servers};

/// One acquisition.
#[derive(Debug)]
struct Hold {
    asked: Instant,
    acquired: Instant,
    number: FencingToken,
}

/// Who had the lock before another asked for it has a smaller number; and no number is given twice.
///
/// A failed pair is returned: the earlier one first.
fn out_of_order(holds: &[Hold]) -> Option<(&Hold, &Hold)> {
    let (mut by_asked, mut by_acquired): (Vec<_>, Vec<_>) =
        (holds.iter().collect(), holds.iter().collect());
    by_asked.sort_by_key(|hold| hold.asked);
    by_acquired.sort_by_key(|hold| hold.acquired);
    let mut earlier = by_acquired.into_iter().peekable();
    let mut largest: Option<&Hold> = None;
    for hold in by_asked {
        // Of all that were acquired before this one was asked for, the largest stands for all.
        while let Some(before) = earlier.next_if(|before| before.acquired < hold.asked) {
            largest = largest.into_iter().chain([before]).max_by_key(|hold| hold.number);
        }
        if let Some(before) = largest.filter(|before| before.number >= hold.number) {
            return Some((before, hold));
        }
    }
    let mut by_number: Vec<_> = holds.iter().collect();
    by_number.sort_by_key(|hold| hold.number);
    by_number.windows(2).find(|two| two[0].number == two[1].number).map(|two| (two[0], two[1]))
}

/// The five servers, which keep what they have answered, each behind a network of its own.
struct Five {
    nodes: Nodes,
    networks: Vec<Proxy>,
}

impl Five {
    fn start() -> Self {
        let kinds = ServerKind::ALL.into_iter().cycle().take(5);
        let nodes = Nodes::of(kinds.map(|kind| Server::builder(kind).tcp().durable().start()));
        let networks = nodes.proxies();
        Self { nodes, networks }
    }

    fn client(&self) -> Client {
        Client::connect(&servers::behind(&self.networks)).unwrap()
    }

    /// Makes trouble at one of them, or at two, and ends it after so many further holds.
    fn trouble(&self, round: usize, held: impl Fn(usize)) {
        let node = round % 5;
        let (server, network) = (&self.nodes.0[node], &self.networks[node]);
        match round % 6 {
            0 => {
                server.kill();
                held(HOLDS_OF_TROUBLE);
                server.start_again();
            }
            1 => {
                let frozen = server.freeze_process();
                held(HOLDS_OF_TROUBLE);
                frozen.thaw();
            }
            2 => {
                assert!(server.cmd(&["CONFIG", "SET", "maxmemory", "1"]).is_ok());
                held(HOLDS_OF_TROUBLE);
                assert!(server.cmd(&["CONFIG", "SET", "maxmemory", "0"]).is_ok());
            }
            3 => network.drop_next_replies_then_cut(3),
            4 => {
                network.drop_replies();
                held(HOLDS_OF_TROUBLE);
                network.heal();
                network.cut();
            }
            _ => {
                // A majority of three is left, one of which is cut off from time to time.
                server.kill();
                let frozen = self.nodes.0[(node + 1) % 5].freeze_process();
                self.networks[(node + 2) % 5].cut();
                held(HOLDS_OF_TROUBLE);
                server.start_again();
                frozen.thaw();
            }
        }
    }
}

const HOLDS_OF_TROUBLE: usize = 8;

/// Four clients want the lock, and there is always trouble at one node or at two.
#[test]
fn numbers_are_unique_and_in_order_whatever_happens_to_two_nodes() {
    let (five, key) = (Five::start(), unique_key("fencing"));
    let wanted = scale(200, 10_000);
    let (holds, count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let lock = five.client().lock(&key).ttl(secs(3));
                while count.load(Ordering::SeqCst) < wanted {
                    let asked = Instant::now();
                    let guard = lock.acquire_within(LIMIT * 3).unwrap();
                    let acquired = Instant::now();
                    let number = guard.fencing_token();
                    holds.lock().unwrap().push(Hold { asked, acquired, number });
                    count.fetch_add(1, Ordering::SeqCst);
                    // With three cut off the outcome is unknown; it is repeated until they answer.
                    drop(guard.release());
                }
            });
        }
        let held = |more: usize| {
            let until = (count.load(Ordering::SeqCst) + more).min(wanted);
            eventually(LIMIT * 3, "it is held again", || count.load(Ordering::SeqCst) >= until);
        };
        for round in 0.. {
            if count.load(Ordering::SeqCst) >= wanted {
                break;
            }
            five.trouble(round, held);
            held(HOLDS_OF_TROUBLE);
        }
    });
    let holds = holds.into_inner().unwrap();
    assert!(holds.len() >= wanted);
    assert!(out_of_order(&holds).is_none(), "{:?}", out_of_order(&holds));
    one_round_trip_is_enough(&five, &key);
}

/// What the trouble has left behind at the nodes costs one acquisition a second round trip at most.
fn one_round_trip_is_enough(five: &Five, key: &str) {
    let times = scale(100, 1_000);
    let client = five.client();
    let lock = client.lock(key).ttl(secs(600)).label("counted");
    five.nodes.becomes_free(key);
    let monitors: Vec<_> = five.nodes.0.iter().map(Server::monitor).collect();
    for _ in 0..times {
        lock.acquire_within(LIMIT).unwrap().release().unwrap();
    }
    five.nodes.becomes_free(key);
    let lines = monitors.into_iter().flat_map(tenure_testkit::Monitor::stop);
    let asked =
        lines.filter(|line| line.contains("@counted\"") && !line.contains(" lua] ")).count();
    let more = asked.checked_sub(5 * 2 * times).expect("each node was asked for each lease");
    assert!(more * 20 <= times, "{more} confirmations of {times} acquisitions");
}

#[test]
fn the_order_checker_finds_a_violation() {
    let began = Instant::now();
    let hold = |asked, acquired, number| Hold {
        asked: began + secs(asked),
        acquired: began + secs(acquired),
        number: FencingToken::new(number).unwrap(),
    };
    let is_wrong = |holds: &[Hold]| out_of_order(holds).is_some();
    assert!(!is_wrong(&[hold(5, 6, 9), hold(0, 1, 3), hold(2, 3, 4)]));
    // Both asked before either had it: any order is right.
    assert!(!is_wrong(&[hold(0, 3, 7), hold(1, 4, 6)]));
    assert!(is_wrong(&[hold(0, 3, 7), hold(1, 4, 7)]), "twice");
    assert!(is_wrong(&[hold(0, 1, 7), hold(2, 3, 6)]), "smaller");
    assert!(is_wrong(&[hold(0, 1, 9), hold(2, 3, 10), hold(4, 5, 8)]), "smaller than the first");
}
