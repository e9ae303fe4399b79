//! Everything that can go wrong for waiters, at once and for long.
//!
//! Eight processes hold, wait and give up, while they are killed, stopped and cut off, and their
//! server is flushed of scripts, paused and restarted. What they believed is compared afterwards.

use std::{
    collections::BTreeMap,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tenure::{AcquireError, Client, LockGuard, blocking};
use tenure_testkit::{Server, ServerKind, TempDir, eventually, scale};

use super::line::{Line, figure, nothing_is_left, queue};
use crate::{
    LIMIT,
    chaos::{self, Belief, Dice, History, Visitor, now},
    ms,
    program::Program,
    secs,
};

const PROCESSES: usize = 8;
const TASKS: usize = 2;
const TTL: Duration = ms(1_500);
/// No waiter is this late: of sixteen in the queue a few are dead or stopped, each
/// for a lease and a provisional grant.
const LOST: Duration = secs(25);
const KEY: &str = "k";

#[test]
fn under_random_faults_holds_never_overlap_and_no_waiter_is_lost() {
    let server = Server::builder(ServerKind::Redis70).durable().start();
    let directory = TempDir::new();
    let log = directory.path().join("log");
    let faults = Chaos::begin(&server, &log).rage(secs(scale(30, 1_800) as u64));

    // A waiter that comes now is served, and in order.
    let client = blocking::Client::connect(&server.url()).unwrap();
    let guard = client.lock(KEY).acquire_within(LIMIT).unwrap();
    let mut line = Line::before(client.lock(KEY));
    (0..5).for_each(|_| line.join(&client.lock(KEY)));
    guard.release().unwrap();
    line.was_served_in_order();

    let history = History::read(&log);
    let (holds, given_up) = (history.holds(), history.given_up());
    let what = format!("chaos: {holds} holds, {given_up} given up, {faults:?}; longest wait");
    figure(&what, history.longest_wait(), LOST);
    history.agrees();
    assert!(holds > 100, "too few holds");
    eventually(LIMIT, "nothing is left", || nothing_is_left(&server, KEY));
    let keys = server.cmd(&["KEYS", "*"]);
    let expected = [format!("{{{KEY}}}:tenure.fence"), queue(KEY)];
    for key in keys.array() {
        let key = key.text().unwrap();
        assert!(expected.iter().any(|expected| expected == key), "{key} is left");
        assert!(server.cmd(&["PTTL", key]).int() > 0, "{key} has no end");
    }
}

/// The processes, and what is done to them.
struct Chaos<'a> {
    server: &'a Server,
    log: &'a Path,
    processes: Vec<Program>,
    dice: Dice,
    faults: BTreeMap<&'static str, usize>,
}

impl<'a> Chaos<'a> {
    fn begin(server: &'a Server, log: &'a Path) -> Self {
        let mut dice = Dice::new(chaos::seed());
        let processes =
            (0..PROCESSES).map(|place| process(server, log, place, &mut dice)).collect();
        Self { server, log, processes, dice, faults: BTreeMap::new() }
    }

    /// One fault after the other, and then the end of all processes that live.
    fn rage(mut self, long: Duration) -> BTreeMap<&'static str, usize> {
        let began = Instant::now();
        while began.elapsed() < long {
            let fault = self.fault();
            *self.faults.entry(fault).or_default() += 1;
            thread::sleep(ms(self.dice.below(120)));
        }
        self.processes.iter_mut().for_each(|process| process.tell("end"));
        self.processes.into_iter().for_each(Program::end_well);
        self.faults
    }

    fn fault(&mut self) -> &'static str {
        let Self { server, log, processes, dice, .. } = self;
        let whom = dice.index(PROCESSES);
        match dice.below(100) {
            0..8 => {
                // A killed holder costs its lease, a killed waiter nothing.
                processes[whom] = process(server, log, whom, dice);
                "killed"
            }
            8..30 => {
                processes[whom].signal(Signal::STOP);
                thread::sleep(ms(dice.below(600)));
                processes[whom].signal(Signal::CONT);
                "stopped"
            }
            30..75 => {
                // One of the connections that listen: those of waiters.
                let list = server.cmd(&["CLIENT", "LIST", "TYPE", "pubsub"]);
                let ids: Vec<_> = list.text().unwrap().lines().filter_map(id_of).collect();
                if let Some(id) = ids.get(whom % ids.len().max(1)) {
                    server.cmd(&["CLIENT", "KILL", "ID", id]);
                }
                "cut off"
            }
            75..85 => {
                server.cmd(&["SCRIPT", "FLUSH"]);
                "scripts flushed"
            }
            85..95 => {
                server.cmd(&["CLIENT", "PAUSE", &dice.below(400).to_string(), "ALL"]);
                "paused"
            }
            _ => {
                server.kill();
                thread::sleep(ms(dice.below(200)));
                server.start_again();
                "restarted"
            }
        }
    }
}

fn id_of(client: &str) -> Option<&str> {
    client.strip_prefix("id=")?.split(' ').next()
}

fn process(server: &Server, log: &Path, place: usize, dice: &mut Dice) -> Program {
    chaos::start("come and go in chaos", &server.url(), log, place, dice.below(u64::MAX))
}

/// One of the processes.
pub(super) fn come_and_go() {
    chaos::come_and_go(TASKS, visit);
}

async fn visit(client: Client, mut visitor: Visitor) {
    let lock = client.lock(KEY).ttl(TTL);
    while !visitor.is_over() {
        let called = now();
        let dice = &mut visitor.dice;
        // A third of all waits are given up: the future is dropped.
        let patience = if dice.below(3) == 0 { ms(dice.below(300)) } else { LOST * 2 };
        let long_ns = dice.below(8_000_000);
        match tokio::time::timeout(patience, lock.acquire_within(LOST)).await {
            Ok(Ok(guard)) => hold(visitor.journal.held(KEY, called, &guard), guard, long_ns).await,
            // A server that is down, or a lease that a stop has eaten up: it asks again.
            Ok(Err(AcquireError::NoQuorum(_))) => tokio::time::sleep(ms(5)).await,
            Ok(Err(error)) => visitor.journal.lost(KEY, called, &error),
            Err(_) => visitor.journal.given_up(),
        }
    }
}

/// Holds it for as long as it believes in it, and no longer than it wants.
async fn hold(mut belief: Belief<'_>, guard: LockGuard, long_ns: u64) {
    let end = now() + long_ns;
    while belief.look(&guard).is_some() && now() < end {
        tokio::time::sleep(ms(1)).await;
    }
    belief.end();
    // A lease that is lost by now says so, and that is all right.
    drop(guard.release().await);
}
