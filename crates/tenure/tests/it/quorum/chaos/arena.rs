//! The nodes, the networks and the processes, and how the plan is done to them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use rustix::process::Signal;
use tenure_testkit::{Clock, Frozen, Proxy, Server, ServerKind};

use super::{
    LOCKS, MAX_TROUBLE, NODES, PROCESSES, TTL,
    plan::{NodeTrouble, Phase, Plan, ProcessTrouble, Step},
};
use crate::{
    chaos::{self, Dice, Journal, now},
    ms,
    program::Program,
    servers,
};

/// What the plan is done to.
pub(super) struct Arena {
    pub(super) nodes: Vec<Server>,
    /// Each process has a network of its own, with a way to each node.
    networks: Vec<Vec<Proxy>>,
    processes: Vec<Program>,
    dice: Dice,
    log: PathBuf,
    journal: Journal,
    frozen: BTreeMap<usize, Frozen>,
    /// Who stands still since when.
    stopped: BTreeMap<usize, u64>,
    /// How often each trouble began.
    pub(super) counts: BTreeMap<String, usize>,
}

impl Arena {
    /// Servers of all kinds in turn, which keep everything on disk. Their wall clocks differ: what
    /// each gives as the number of a lock is its own.
    pub(super) fn open(seed: u64, log: &Path) -> Self {
        let mut dice = Dice::new(seed);
        let kinds = ServerKind::ALL.into_iter().cycle().take(NODES);
        let nodes: Vec<_> = kinds
            .map(|kind| {
                let clock = Clock::new();
                clock.advance(ms(dice.below(MAX_AHEAD_MS)));
                Server::builder(kind).tcp().durable().clock(clock).start()
            })
            .collect();
        servers::open(&nodes);
        let network = || nodes.iter().map(Proxy::to).collect();
        let networks: Vec<Vec<_>> = (0..PROCESSES).map(|_| network()).collect();
        let mut arena = Self {
            nodes,
            networks,
            processes: Vec::new(),
            dice,
            log: log.to_owned(),
            journal: Journal::open(log, "arena"),
            frozen: BTreeMap::new(),
            stopped: BTreeMap::new(),
            counts: BTreeMap::new(),
        };
        arena.processes = (0..PROCESSES).map(|place| arena.process(place)).collect();
        arena
    }

    fn process(&mut self, place: usize) -> Program {
        let urls = servers::behind(&self.networks[place]);
        let seed = self.dice.below(u64::MAX);
        chaos::start("come and go among nodes", &urls, &self.log, place, seed)
    }

    /// One step after the other, each when it is its time.
    pub(super) fn rage(&mut self, plan: Plan) {
        let began = Instant::now();
        for (at, step) in plan {
            thread::sleep(at.saturating_sub(began.elapsed()));
            self.take(step);
        }
    }

    fn take(&mut self, step: Step) {
        let begins = match step {
            Step::Node(_, trouble, Phase::Begins) => Some(format!("node {trouble:?}")),
            Step::Process(_, trouble, Phase::Begins) => Some(format!("process {trouble:?}")),
            Step::Node(..) | Step::Process(..) => None,
        };
        if let Some(trouble) = begins {
            *self.counts.entry(trouble).or_default() += 1;
        }
        match step {
            Step::Node(place, trouble, Phase::Begins) => self.hurt_node(place, trouble),
            Step::Node(place, trouble, Phase::Ends) => self.heal_node(place, trouble),
            Step::Process(place, trouble, Phase::Begins) => self.hurt_process(place, trouble),
            Step::Process(place, trouble, Phase::Ends) => self.heal_process(place, trouble),
        }
    }

    /// All ways to a node.
    fn ways_to(&self, node: usize) -> impl Iterator<Item = &Proxy> {
        self.networks.iter().map(move |network| &network[node])
    }

    fn hurt_node(&mut self, place: usize, trouble: NodeTrouble) {
        let late = ms(self.dice.below(MAX_LATE_MS));
        let node = &self.nodes[place];
        match trouble {
            NodeTrouble::Frozen => {
                self.frozen.insert(place, node.freeze_process());
            }
            NodeTrouble::Killed => node.kill(),
            NodeTrouble::BlackHole => self.ways_to(place).for_each(Proxy::black_hole),
            NodeTrouble::Refusing => self.ways_to(place).for_each(|way| {
                way.refuse();
                way.cut();
            }),
            NodeTrouble::Slow => self.ways_to(place).for_each(|way| way.delay_replies(late)),
            NodeTrouble::Mute => self.ways_to(place).for_each(Proxy::drop_replies),
            NodeTrouble::HalfOpen => self.ways_to(place).for_each(|way| way.delay_requests(late)),
            NodeTrouble::Paused => {
                let longest = MAX_TROUBLE.as_millis().to_string();
                assert!(node.cmd(&["CLIENT", "PAUSE", &longest, "WRITE"]).is_ok());
            }
            NodeTrouble::Forgetful => assert!(node.cmd(&["SCRIPT", "FLUSH"]).is_ok()),
            NodeTrouble::Ahead => {
                let by = (1_u64 << self.dice.below(MAX_BITS_AHEAD)).to_string();
                for lock in LOCKS {
                    let fence = format!("{{{lock}}}:tenure.fence");
                    assert!(node.cmd(&["EVAL", GET_AHEAD, "1", &fence, &by]).is_ok());
                }
            }
        }
    }

    fn heal_node(&mut self, place: usize, trouble: NodeTrouble) {
        match trouble {
            NodeTrouble::Frozen => drop(self.frozen.remove(&place)),
            NodeTrouble::Killed => self.nodes[place].start_again(),
            NodeTrouble::Paused => {
                assert!(self.nodes[place].cmd(&["CLIENT", "UNPAUSE"]).is_ok());
            }
            NodeTrouble::HalfOpen => self.ways_to(place).for_each(|way| {
                way.half_open();
                way.deliver_late();
                way.heal();
            }),
            // What a process suffers from on this way ends, too: it is the worse for others.
            _ => self.ways_to(place).for_each(Proxy::heal),
        }
    }

    fn hurt_process(&mut self, place: usize, trouble: ProcessTrouble) {
        match trouble {
            ProcessTrouble::Killed => self.processes[place] = self.process(place),
            ProcessTrouble::Stopped => {
                self.stopped.insert(place, now());
                self.processes[place].stop();
            }
            ProcessTrouble::CutOff => {
                let first = self.dice.index(NODES);
                let majority = (first..=first + NODES / 2).map(|node| node % NODES);
                majority.for_each(|node| self.networks[place][node].black_hole());
            }
            ProcessTrouble::Slow => {
                let late = TTL / 2 + ms(self.dice.below(MAX_LATER_MS));
                self.networks[place].iter().for_each(|way| way.delay_replies(late));
            }
        }
    }

    fn heal_process(&mut self, place: usize, trouble: ProcessTrouble) {
        match trouble {
            ProcessTrouble::Killed => {}
            ProcessTrouble::Stopped => {
                self.processes[place].signal(Signal::CONT);
                if let Some(since) = self.stopped.remove(&place) {
                    self.journal.stopped(place, since, now());
                }
            }
            ProcessTrouble::CutOff | ProcessTrouble::Slow => {
                self.networks[place].iter().for_each(Proxy::heal);
            }
        }
    }

    /// Asks all processes to end, and waits until they have released everything.
    pub(super) fn close(&mut self) {
        self.processes.iter_mut().for_each(|process| process.tell("end"));
        self.processes.drain(..).for_each(Program::end_well);
    }
}

/// The clocks of the nodes differ by as much at most.
const MAX_AHEAD_MS: u64 = 500;

/// From one number to sixteen seconds: so long the clock raises none, and each node counts alone.
const MAX_BITS_AHEAD: u64 = 25;

const GET_AHEAD: &str = "
    local last = redis.call('GET', KEYS[1])
    local next = last and string.format('%.0f', last + ARGV[1])
    return next and redis.call('SET', KEYS[1], next, 'KEEPTTL') or {ok = 'OK'}";

/// Far over the time limit of a vote, and of a renewal, too.
const MAX_LATE_MS: u64 = 1_000;

/// On top of half a TTL, which is late for a caller that wants half. After a whole one, what is
/// released is not answered in time, and connections end.
const MAX_LATER_MS: u64 = 900;
