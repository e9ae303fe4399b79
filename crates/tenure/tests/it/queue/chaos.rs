//! Everything that can go wrong for those who wait, at once and for long.
//!
//! Eight processes hold, wait and give up, while they are killed, stopped and cut off, and their
//! server is flushed of scripts, paused and restarted. Each writes into one file, inside each hold,
//! when it believes that it holds the lock: a line is a moment at which its guard was valid, by a
//! clock that all processes share. What they believed is compared afterwards.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::id,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    process::Signal,
    time::{ClockId, clock_gettime},
};
use tenure::{AcquireError, Client, Lock, LockGuard, blocking};
use tenure_testkit::{Server, ServerKind, TempDir, eventually, scale};

use super::line::{Line, figure, note, nothing_is_left, queue};
use crate::{
    LIMIT, ms,
    program::{self, Program, setting},
    secs,
};

const PROCESSES: usize = 8;
const TASKS: usize = 2;
const TTL: Duration = ms(1_500);
/// Nobody is this late: sixteen stand in line, and of those ahead a few are dead or stopped, each
/// for a lease and a claim.
const LOST: Duration = secs(25);
const KEY: &str = "k";

#[test]
fn in_chaos_nobody_overlaps_and_nobody_is_lost() {
    let server = Server::builder(ServerKind::Redis70).durable().start();
    let directory = TempDir::new();
    let log = directory.path().join("log");
    let faults = Chaos::begin(&server, &log).rage(secs(scale(30, 1_800) as u64));

    // Whoever comes now is served, and in order.
    let client = blocking::Client::connect(&server.url()).unwrap();
    let guard = client.lock(KEY).acquire_within(LIMIT).unwrap();
    let mut line = Line::before(client.lock(KEY));
    (0..5).for_each(|_| line.join(&client.lock(KEY)));
    guard.release().unwrap();
    line.was_served_in_order();

    let beliefs = Beliefs::read(&log);
    beliefs.agree();
    beliefs.sum_up(&faults);
    assert!(beliefs.by_number.len() > 100, "too few holds to tell");
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
        let processes = (0..PROCESSES).map(|_| process(server, log)).collect();
        Self { server, log, processes, dice: Dice::new(), faults: BTreeMap::new() }
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
        let whom = usize::try_from(dice.below(PROCESSES as u64)).unwrap();
        match dice.below(100) {
            0..8 => {
                // A killed holder costs its lease, a killed waiter nothing.
                processes[whom] = process(server, log);
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

fn process(server: &Server, log: &Path) -> Program {
    let (url, log) = (server.url(), log.display().to_string());
    Program::start("come and go in chaos", &[("SERVER", &url), ("LOG", &log)])
}

/// Numbers that look random, the same in each run of a seed.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Self(now() ^ u64::from(id()) << 32 | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Nanoseconds on the clock that all processes share.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// One of the processes.
pub(super) fn come_and_go() {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(TASKS).enable_time().build().unwrap();
    let client = Client::connect(&setting("SERVER")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (lock, over) = (client.lock(KEY).ttl(TTL), Arc::clone(&over));
            runtime.spawn(visit(lock, over, task as u64))
        })
        .collect();
    assert_eq!(program::heed(), "end");
    over.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
        client.close().await.unwrap();
    });
}

async fn visit(lock: Lock, over: Arc<AtomicBool>, task: u64) {
    let log = setting("LOG");
    let log = Path::new(&log);
    let who = u64::from(id()) * TASKS as u64 + task;
    let mut dice = Dice(Dice::new().0.wrapping_add(who << 8));
    while !over.load(Ordering::Relaxed) {
        let began = now();
        // A third of all waits are given up: the future is dropped.
        let patience = if dice.below(3) == 0 { ms(dice.below(300)) } else { LOST * 2 };
        match tokio::time::timeout(patience, lock.acquire_within(LOST)).await {
            Ok(Ok(guard)) => {
                note(log, &format!("waited {}", (now() - began) / 1_000_000));
                hold(log, who, guard, dice.below(8_000_000)).await;
            }
            // A server that is down, or a lease that a stop has eaten up: it asks again.
            Ok(Err(AcquireError::NoQuorum(_))) => tokio::time::sleep(ms(5)).await,
            Ok(Err(error)) => note(log, &format!("lost {error}")),
            Err(_) => note(log, "given-up"),
        }
    }
}

/// Holds it, and says so for as long as it believes it.
async fn hold(log: &Path, who: u64, guard: LockGuard, long_ns: u64) {
    let end = now() + long_ns;
    let number = guard.fencing_token();
    loop {
        // A guard that is valid now was valid at a moment before.
        let moment = now();
        if guard.valid_for().is_none() {
            break;
        }
        note(log, &format!("holds {number} {moment} {who}"));
        if moment >= end {
            break;
        }
        tokio::time::sleep(ms(1)).await;
    }
    // A lease that is lost by now says so, and that is all right.
    drop(guard.release().await);
}

/// What the processes believed.
#[derive(Default)]
struct Beliefs {
    /// From when to when, and who.
    by_number: BTreeMap<u64, (u64, u64, u64)>,
    waits: usize,
    given_up: usize,
    longest_ms: u64,
}

impl Beliefs {
    fn read(log: &Path) -> Self {
        let mut beliefs = Self::default();
        for line in fs::read_to_string(log).unwrap().lines() {
            let words: Vec<_> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            match words[0] {
                "waited" => {
                    beliefs.waits += 1;
                    beliefs.longest_ms = beliefs.longest_ms.max(number(1));
                }
                "given-up" => beliefs.given_up += 1,
                "holds" => {
                    let (at, who) = (number(2), number(3));
                    let belief = beliefs.by_number.entry(number(1)).or_insert((at, at, who));
                    assert_eq!(belief.2, who, "two have the number of {line}");
                    belief.1 = at;
                }
                _ => panic!("{line}"),
            }
        }
        beliefs
    }

    fn sum_up(&self, faults: &BTreeMap<&str, usize>) {
        let Self { by_number, waits, given_up, longest_ms } = self;
        let holds = by_number.len();
        let what = format!("chaos: {holds} holds, {waits} waits, {given_up} given up, {faults:?}");
        figure(&format!("{what}; longest wait"), ms(*longest_ms), LOST);
    }

    /// Nobody believed before the one with the number before had stopped to.
    fn agree(&self) {
        let mut last = (0, 0);
        for (number, (from, to, _)) in &self.by_number {
            let (before, until) = last;
            assert!(*from > until, "{number} and {before} overlap by {} ns", until - from);
            last = (*number, *to);
        }
    }
}
