//! Every state there is, in the order of how many steps it takes to get there.

use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, Hasher},
};

use crate::{
    Counterexample, Kind, Report, Violation,
    config::Config,
    model::Model,
    print::{Fingerprint, Printer},
    world::World,
};

/// How far to search.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain settings of a search")]
pub struct Limits {
    /// States at most; a search that has more is capped, and says so.
    pub states: usize,
    /// Liveness is tried from every how many-th state: 1 is from all, 0 from none.
    pub liveness_every: usize,
    /// Go on until this rule is broken, whichever others are.
    pub seeking: Option<Kind>,
    /// Do not take clients for each other, though they are all alike.
    pub as_they_are: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { states: 1_000_000, liveness_every: 1, seeking: None, as_they_are: false }
    }
}

/// Searches the states of a world, breadth first, so that what is found is found by a shortest way.
#[must_use]
pub fn search(config: Config, limits: Limits) -> Report {
    let mut printer = Printer::new(config.clients, limits.as_they_are);
    search_world(&Model::new(config), limits, |state| printer.print(state))
}

/// Searches the states of any world, distinguished by their fingerprints.
pub(crate) fn search_world<W: World>(
    world: &W,
    limits: Limits,
    print: impl FnMut(&W::State) -> Fingerprint,
) -> Report {
    let (seen, report) = (HashSet::default(), Report::default());
    let mut search = Search { world, limits, print, seen, ways: Vec::new(), report };
    search.run(world.first());
    search.report.states = search.ways.len();
    search.report
}

struct Search<'a, W: World, P> {
    world: &'a W,
    limits: Limits,
    print: P,
    seen: HashSet<Fingerprint, BuildHasherDefault<AsItIs>>,
    /// For each state, from which other one, by which step, it was first reached; none for the
    /// first.
    ways: Vec<(u32, Option<W::Step>)>,
    report: Report,
}

/// Nothing more to do.
struct Over;

impl<W: World, P: FnMut(&W::State) -> Fingerprint> Search<'_, W, P> {
    fn run(&mut self, first: W::State) {
        _ = self.is_new(&first, 0, None);
        let mut level = vec![(0, first)];
        while !level.is_empty() {
            let mut next = Vec::new();
            for (id, state) in &level {
                if self.expand(*id, state, &mut next).is_err() {
                    return;
                }
            }
            self.report.depth += usize::from(!next.is_empty());
            level = next;
        }
    }

    /// Tries a state's liveness, and takes each step that it offers.
    fn expand(
        &mut self,
        id: u32,
        state: &W::State,
        next: &mut Vec<(u32, W::State)>,
    ) -> Result<(), Over> {
        let nth = usize::try_from(id).unwrap_or(0);
        if self.limits.liveness_every > 0
            && nth.is_multiple_of(self.limits.liveness_every)
            && let Err((violation, way)) = self.world.try_liveness(state, nth, &mut self.report)
        {
            return self.note(violation, id, &way, way.len());
        }
        let mut steps = Vec::new();
        self.world.steps(state, &mut steps);
        for step in steps {
            let mut state = state.clone();
            if let Err(violation) = self.world.take(&mut state, step) {
                self.note(violation, id, &[step], 0)?;
            } else if let Some(id) = self.is_new(&state, id, Some(step)) {
                if self.ways.len() > self.limits.states {
                    self.report.capped = true;
                    return Err(Over);
                }
                next.push((id, state));
            }
        }
        Ok(())
    }

    /// Takes down a state that was not seen before.
    fn is_new(&mut self, state: &W::State, from: u32, by: Option<W::Step>) -> Option<u32> {
        let new = self.seen.insert((self.print)(state));
        new.then(|| {
            self.ways.push((from, by));
            u32::try_from(self.ways.len() - 1).expect("fewer states than memory has room for")
        })
    }

    /// Takes down a broken rule; what comes after it is not looked at.
    fn note(
        &mut self,
        violation: Violation,
        at: u32,
        then: &[W::Step],
        fairly: usize,
    ) -> Result<(), Over> {
        if self.limits.seeking.is_some_and(|kind| kind != violation.kind()) {
            return Ok(());
        }
        let mut way: Vec<W::Step> = then.iter().rev().copied().collect();
        let mut id = at;
        while id != 0 {
            let (from, by) = self.ways[usize::try_from(id).unwrap_or(0)];
            way.extend(by);
            id = from;
        }
        way.reverse();
        self.report.found = Some(Counterexample::new(self.world, violation, &way, fairly));
        Err(Over)
    }
}

/// Fingerprints need no further mixing.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u128(&mut self, print: u128) {
        self.0 = u64::try_from(print >> 64).unwrap_or(0);
    }
}
