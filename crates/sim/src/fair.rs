//! Liveness: what happens from a state when nothing more goes wrong.
//!
//! Everything that is under way arrives, timers fire when due, connections are reopened, holders
//! release at once. Time passes only when nothing else can happen. A crashed client stays in the
//! eyes of the server, so each of its entries costs a provisional grant.

use crate::{
    Violation,
    attempt::Phase,
    check::waiters,
    model::Model,
    random::Random,
    state::QueueState,
    step::{QueueStep, lines},
    violation::Kind,
    world::World,
};

/// What becomes of requests of connections that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// They arrive first.
    Arrive,
    /// They never do: the server knows at once.
    Never,
    /// They arrive in between, and all else in any order.
    Mixed,
}

impl Model {
    /// Goes on from a state, fairly and without faults, until nobody waits. The ticks it took; and
    /// in any case the steps, which are added to `way`.
    pub(crate) fn fair(
        &self,
        state: &QueueState,
        old: Old,
        seed: u64,
        way: &mut Vec<QueueStep>,
    ) -> Result<u8, Violation> {
        let mut state = state.clone();
        let mut random = Random::new(seed);
        let mut take = |state: &mut QueueState, step| {
            way.push(step);
            self.take(state, step)
        };
        if old == Old::Never {
            for line in ended(&state) {
                take(&mut state, QueueStep::Notice(line))?;
            }
        }
        let (mut ticks, mut steps) = (0, Vec::new());
        for _ in 0..MAX_STEPS {
            if waiters(&state).next().is_none() {
                return Ok(ticks);
            }
            self.progress(&state, old, &mut steps);
            let nth = if old == Old::Mixed { random.below(steps.len()) } else { 0 };
            if let Some(step) = steps.get(nth) {
                take(&mut state, *step)?;
            } else if ticks < self.config.patience {
                ticks += 1;
                take(&mut state, QueueStep::Tick)?;
            } else {
                break;
            }
        }
        let waiting: Vec<_> = waiters(&state).map(|who| who.to_string()).collect();
        Err(Violation::new(Kind::Stuck, format!("{} after {ticks} ticks", waiting.join(", "))))
    }

    /// The steps that must happen in the end.
    fn progress(&self, state: &QueueState, old: Old, steps: &mut Vec<QueueStep>) {
        self.steps(state, steps);
        let ended: Vec<_> = ended(state).collect();
        steps.retain(|step| match step {
            QueueStep::Run(line) => old != Old::Never || !ended.contains(line),
            QueueStep::Deliver(_) | QueueStep::Poll(_) | QueueStep::Reconnect(_) => true,
            QueueStep::Release(who) => state.attempt(*who).phase == Phase::Holding,
            _ => false,
        });
        let is_old =
            |step: &QueueStep| matches!(step, QueueStep::Run(line) if ended.contains(line));
        steps.sort_by_key(|step| !is_old(step));
    }
}

/// The connections that have ended, of clients that live: the server will know of those.
fn ended(state: &QueueState) -> impl Iterator<Item = crate::state::Line> + use<> {
    let clients = (0..).zip(&state.clients);
    let live = clients.filter(|(_, client)| !client.crashed);
    let lines = live.flat_map(|(client, _)| {
        lines(state, client).filter(move |line| Model::current(state, client) != Some(*line))
    });
    lines.collect::<Vec<_>>().into_iter()
}

/// More than any queue of a model takes.
const MAX_STEPS: usize = 2_000;
