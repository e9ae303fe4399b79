//! What can happen in a state.

use tenure_core::Attempt;

use super::{
    config::{NumbersFlaw, Timing},
    model::Model,
    names::BEGIN,
    state::{Ask, Confirm, NODES, Phase, State},
};

/// One step: attempts, nodes and rounds by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An attempt begins, and asks all nodes.
    Begin(u8),
    /// A node carries out the request for the lock.
    Run(u8, usize),
    /// Its reply arrives.
    Vote(u8, usize),
    /// Its time limit is over: the reply, or the request, is lost or late.
    NoVote(u8, usize),
    RunConfirm(u8, usize, usize),
    Confirmed(u8, usize, usize),
    NotConfirmed(u8, usize, usize),
    /// It has waited long enough for an equal number.
    Grace(u8),
    /// Its client crashes, or stops waiting.
    Crash(u8),
    /// It begins to release.
    GiveUp(u8),
    /// A node carries out its release.
    Release(u8, usize),
    /// Its key at a node ends, or is deleted.
    Vanish(usize),
    /// A node comes back without what it kept.
    Lose(usize),
    /// A node that came back: another one's last number is read; all are, and it is repaired.
    Read(usize, usize),
    Repair(usize),
}

impl Model {
    /// All steps that are possible.
    pub(crate) fn possible(&self, state: &State, steps: &mut Vec<Step>) {
        steps.clear();
        // Nobody can return any more.
        if state.attempts.iter().all(|a| matches!(a.phase, Phase::Holding | Phase::Over)) {
            return;
        }
        for (who, attempt) in (0..).zip(&state.attempts) {
            match attempt.phase {
                // They are all alike: the first to begin is the first.
                Phase::Idle => {
                    steps.push(Step::Begin(who));
                    break;
                }
                Phase::Asking => {
                    if is_in_grace(attempt.machine.as_deref()) {
                        steps.push(Step::Grace(who));
                    }
                    if self.config.crashes {
                        steps.push(Step::Crash(who));
                    }
                }
                Phase::Holding => steps.push(Step::GiveUp(who)),
                Phase::Over => {}
            }
            for (node, line) in attempt.lines.iter().enumerate() {
                if matches!(line.ask, Ask::Sent | Ask::Late) {
                    steps.push(Step::Run(who, node));
                }
                if matches!(line.ask, Ask::Replied(_)) {
                    steps.push(Step::Vote(who, node));
                }
                if self.config.limits && matches!(line.ask, Ask::Sent | Ask::Replied(_)) {
                    steps.push(Step::NoVote(who, node));
                }
                for (round, confirm) in line.confirms.iter().enumerate() {
                    if matches!(confirm, Confirm::Sent(_) | Confirm::Late(_)) {
                        steps.push(Step::RunConfirm(who, node, round));
                    }
                    if matches!(confirm, Confirm::Replied(_)) {
                        steps.push(Step::Confirmed(who, node, round));
                    }
                    if self.config.limits
                        && matches!(confirm, Confirm::Sent(_) | Confirm::Replied(_))
                    {
                        steps.push(Step::NotConfirmed(who, node, round));
                    }
                }
            }
        }
        for index in 0..NODES {
            self.node_steps(state, index, steps);
        }
    }

    fn node_steps(&self, state: &State, index: usize, steps: &mut Vec<Step>) {
        let node = &state.nodes[index];
        if let Some(owner) = node.owner {
            let attempt = &state.attempts[usize::from(owner)];
            let is_over = attempt.phase == Phase::Over;
            if is_over || self.config.timing == Timing::Dishonest {
                steps.push(Step::Vanish(index));
            }
            // Where nothing is raised, a release is what a key's end is.
            if is_over && attempt.leaves > node.last {
                steps.push(Step::Release(owner, index));
            }
        }
        if state.losses > 0 {
            steps.push(Step::Lose(index));
        }
        let Some(suspect) = &node.suspect else { return };
        let early = self.config.flaw == Some(NumbersFlaw::EarlyRepair);
        if !self.config.repairs || !(early || suspect.delay == 0) {
            return;
        }
        for other in (0..NODES).filter(|other| *other != index) {
            if state.nodes[other].suspect.is_none() && suspect.read & (1 << other) == 0 {
                steps.push(Step::Read(index, other));
            }
        }
        if suspect.read.count_ones() >= 2 {
            steps.push(Step::Repair(index));
        }
    }
}

/// Whether an attempt waits for an equal number: then it needs to know soon that time passed.
fn is_in_grace(machine: Option<&Attempt>) -> bool {
    let timer = machine.and_then(Attempt::poll_timer);
    timer.is_some_and(|timer| timer < BEGIN + std::time::Duration::from_secs(1))
}
