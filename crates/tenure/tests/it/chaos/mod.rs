//! What the tests of chaos share: dice, the processes that come and go, and what these believe.
//!
//! Each process writes into one file when it believes that it holds which lock, by a clock that all
//! of them share ([`journal`]). What they believed is compared afterwards ([`history`]).

mod history;
mod journal;

use std::{
    env,
    path::Path,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::time::{ClockId, clock_gettime};
use tenure::Client;

pub(crate) use self::{
    history::History,
    journal::{Belief, Journal},
};
use crate::program::{self, Program, setting};

/// Numbers that look random, the same in each run of a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Vigna's splitmix64: any seed will do.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    /// An index of something that has so many.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("less than a length")
    }
}

/// The seed of this run, which is printed: `TENURE_SEED`, or one that no other run had.
#[expect(clippy::print_stdout, reason = "a failure must be repeatable")]
pub(crate) fn seed() -> u64 {
    let named = env::var("TENURE_SEED").ok();
    let fresh = || now() ^ u64::from(process::id()) << 32;
    let seed = named.map_or_else(fresh, |seed| seed.parse().expect("TENURE_SEED is a number"));
    println!("TENURE_SEED={seed}");
    seed
}

/// Nanoseconds on the clock that all processes share, and that leases are counted by.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Starts one of the processes, which has a program's name, its place and a seed.
pub(crate) fn start(name: &str, server: &str, log: &Path, place: usize, seed: u64) -> Program {
    let (log, place, seed) = (log.display().to_string(), place.to_string(), seed.to_string());
    let settings = [("SERVER", server), ("LOG", &*log), ("PLACE", &*place), ("SEED", &*seed)];
    Program::start(name, &settings)
}

/// A process that comes and goes.
pub(crate) struct Visitor {
    /// Which of its process.
    pub(crate) index: usize,
    pub(crate) dice: Dice,
    pub(crate) journal: Journal,
    over: Arc<AtomicBool>,
}

impl Visitor {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// One of the processes: so many come and go, until it is asked to end.
pub(crate) fn come_and_go<V>(visitors: usize, visit: impl Fn(Client, Visitor) -> V)
where
    V: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_time().build().unwrap();
    let client = Client::connect(&setting("SERVER")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let mut dice = Dice::new(setting("SEED").parse().unwrap());
    let visitors: Vec<_> = (0..visitors)
        .map(|index| {
            let dice = Dice::new(dice.below(u64::MAX));
            let journal = Journal::open(Path::new(&setting("LOG")), &setting("PLACE"));
            let visitor = Visitor { index, dice, journal, over: Arc::clone(&over) };
            runtime.spawn(visit(client.clone(), visitor))
        })
        .collect();
    assert_eq!(program::heed(), "end");
    over.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for visitor in visitors {
            visitor.await.unwrap();
        }
        // A node that has just come back may answer later than this waits for.
        _ = client.close().await;
    });
}
