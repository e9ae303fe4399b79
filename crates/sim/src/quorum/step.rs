//! What can happen in a state.

use tenure_core::Attempt;

use super::{
    config::{NumbersFlaw, Timing},
    model::QuorumModel,
    names::BEGIN,
    state::{AttemptPhase, Confirm, LockRequest, NODES, QuorumState},
};

/// One step: attempts, nodes and rounds by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuorumStep {
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

impl QuorumModel {
    /// All steps that are possible.
    pub(crate) fn possible(&self, state: &QuorumState, steps: &mut Vec<QuorumStep>) {
        steps.clear();
        // Nobody can return any more.
        if state
            .attempts
            .iter()
            .all(|a| matches!(a.phase, AttemptPhase::Holding | AttemptPhase::Over))
        {
            return;
        }
        for (who, attempt) in (0..).zip(&state.attempts) {
            match attempt.phase {
                // They are all alike: the first to begin is the first.
                AttemptPhase::Idle => {
                    steps.push(QuorumStep::Begin(who));
                    break;
                }
                AttemptPhase::Asking => {
                    if is_in_grace(attempt.machine.as_deref()) {
                        steps.push(QuorumStep::Grace(who));
                    }
                    if self.config.crashes {
                        steps.push(QuorumStep::Crash(who));
                    }
                }
                AttemptPhase::Holding => steps.push(QuorumStep::GiveUp(who)),
                AttemptPhase::Over => {}
            }
            for (node, line) in attempt.lines.iter().enumerate() {
                if matches!(line.ask, LockRequest::Sent | LockRequest::Late) {
                    steps.push(QuorumStep::Run(who, node));
                }
                if matches!(line.ask, LockRequest::Replied(_)) {
                    steps.push(QuorumStep::Vote(who, node));
                }
                if self.config.limits
                    && matches!(line.ask, LockRequest::Sent | LockRequest::Replied(_))
                {
                    steps.push(QuorumStep::NoVote(who, node));
                }
                for (round, confirm) in line.confirms.iter().enumerate() {
                    if matches!(confirm, Confirm::Sent(_) | Confirm::Late(_)) {
                        steps.push(QuorumStep::RunConfirm(who, node, round));
                    }
                    if matches!(confirm, Confirm::Replied(_)) {
                        steps.push(QuorumStep::Confirmed(who, node, round));
                    }
                    if self.config.limits
                        && matches!(confirm, Confirm::Sent(_) | Confirm::Replied(_))
                    {
                        steps.push(QuorumStep::NotConfirmed(who, node, round));
                    }
                }
            }
        }
        for index in 0..NODES {
            self.node_steps(state, index, steps);
        }
    }

    fn node_steps(&self, state: &QuorumState, index: usize, steps: &mut Vec<QuorumStep>) {
        let node = &state.nodes[index];
        if let Some(owner) = node.owner {
            let attempt = &state.attempts[usize::from(owner)];
            let is_over = attempt.phase == AttemptPhase::Over;
            if is_over || self.config.timing == Timing::Dishonest {
                steps.push(QuorumStep::Vanish(index));
            }
            // Where nothing is raised, a release is what a key's end is.
            if is_over && attempt.leaves > node.last {
                steps.push(QuorumStep::Release(owner, index));
            }
        }
        if state.losses > 0 {
            steps.push(QuorumStep::Lose(index));
        }
        let Some(quarantine) = &node.quarantine else { return };
        let early = self.config.flaw == Some(NumbersFlaw::EarlyRepair);
        if !self.config.repairs || !(early || quarantine.delay == 0) {
            return;
        }
        for other in (0..NODES).filter(|other| *other != index) {
            if state.nodes[other].quarantine.is_none() && quarantine.read & (1 << other) == 0 {
                steps.push(QuorumStep::Read(index, other));
            }
        }
        if quarantine.read.count_ones() >= 2 {
            steps.push(QuorumStep::Repair(index));
        }
    }
}

/// Whether an attempt waits for an equal number: then it needs to know soon that time passed.
fn is_in_grace(machine: Option<&Attempt>) -> bool {
    let timer = machine.and_then(Attempt::poll_timer);
    timer.is_some_and(|timer| timer < BEGIN + std::time::Duration::from_secs(1))
}
