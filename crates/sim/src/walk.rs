//! Random walks, where there are more states than can be searched.

use crate::{
    Counterexample, Report, config::Config, model::Model, random::Random, state::QueueState,
    step::QueueStep, world::World,
};

/// Walks from the beginning, so often, each so many steps, and tries liveness from where each walk
/// ends. The same seed walks the same ways.
#[must_use]
pub fn walk(config: Config, walks: usize, steps: usize, seed: u64) -> Report {
    let model = Model::new(config);
    let mut random = Random::new(seed);
    let mut report = Report { capped: true, ..Report::default() };
    for _ in 0..walks {
        let (mut state, mut way) = (QueueState::new(&config), Vec::new());
        let mut outcome = Ok(());
        // Some walks stop early, so that liveness is tried from the middle of things too.
        for _ in 0..=random.below(steps) {
            let Some(step) = choose(&model, &state, &mut random) else { break };
            way.push(step);
            outcome = model.take(&mut state, step);
            if outcome.is_err() {
                break;
            }
        }
        report.states += way.len();
        report.depth = report.depth.max(way.len());
        let seed = random.below(usize::MAX);
        let tried = outcome.map_err(|violation| (violation, Vec::new()));
        let tried = tried.and_then(|()| report.try_liveness(&model, &state, seed));
        if let Err((violation, rest)) = tried {
            let fairly = rest.len();
            way.extend(rest);
            report.found = Some(Counterexample::new(&model, violation, &way, fairly));
            break;
        }
    }
    report
}

/// Mostly what goes forward: else a walk spends its faults and its time at its beginning.
fn choose(model: &Model, state: &QueueState, random: &mut Random) -> Option<QueueStep> {
    let mut steps = Vec::new();
    model.steps(state, &mut steps);
    let forward = random.below(4) != 0;
    let goes = |step: &QueueStep| {
        matches!(
            step,
            QueueStep::Begin(_)
                | QueueStep::Run(_)
                | QueueStep::Deliver(_)
                | QueueStep::Poll(_)
                | QueueStep::Reconnect(_)
        )
    };
    if forward && steps.iter().any(goes) {
        steps.retain(goes);
    }
    steps.get(random.below(steps.len())).copied()
}
