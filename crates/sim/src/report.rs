//! What came of looking.

use std::fmt;

use crate::{Violation, fair::Old, model::Model, state::QueueState, step::QueueStep, world::World};

/// What came of a search, or of random walks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Different states seen; for walks, steps taken.
    pub states: usize,
    /// Steps to the farthest state.
    pub depth: usize,
    /// There were more states than the limit permits.
    pub capped: bool,
    /// States from which liveness was tried, three ways each.
    pub tried: usize,
    /// Ticks until nobody waited any more, in the worst of those.
    pub worst_ticks: u8,
    /// The first rule that was broken, if any was.
    pub found: Option<Counterexample>,
}

/// A broken rule, and how to break it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Counterexample {
    /// What is broken.
    pub violation: Violation,
    /// How many steps it takes; those that go on fairly, and find that a client waits forever, are
    /// not counted.
    pub steps: usize,
    /// The steps, in words, with what the server keeps after each.
    pub trace: Vec<String>,
}

impl Counterexample {
    /// `fairly`: how many of the last steps only go on fairly.
    pub(crate) fn new<W: World>(
        world: &W,
        violation: Violation,
        way: &[W::Step],
        fairly: usize,
    ) -> Self {
        Self { violation, steps: way.len() - fairly, trace: world.trace(way) }
    }
}

impl Report {
    /// Tries what becomes of a state when nothing more goes wrong. What breaks a rule comes with
    /// the steps that do.
    pub(crate) fn try_liveness(
        &mut self,
        model: &Model,
        state: &QueueState,
        seed: usize,
    ) -> Result<(), (Violation, Vec<QueueStep>)> {
        self.tried += 1;
        let seed = u64::try_from(seed).unwrap_or(u64::MAX);
        for old in [Old::Arrive, Old::Never, Old::Mixed] {
            let mut way = Vec::new();
            let ticks = model.fair(state, old, seed, &mut way).map_err(|broken| (broken, way))?;
            self.worst_ticks = self.worst_ticks.max(ticks);
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, depth, capped, tried, worst_ticks, found } = self;
        let extent = match found {
            Some(_) => "until then",
            None if *capped => "capped",
            None => "all",
        };
        write!(f, "{states} states ({extent}), {depth} steps deep; ")?;
        if *tried > 0 {
            write!(f, "liveness from {tried}, at worst {worst_ticks} ticks; ")?;
        }
        match found {
            None => f.write_str("no violation"),
            Some(Counterexample { violation, steps, trace }) => {
                write!(f, "{violation}\nafter {steps} steps")?;
                trace.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}
