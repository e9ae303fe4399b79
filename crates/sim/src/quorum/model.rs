//! The steps of the world.

use std::{rc::Rc, time::Duration};

use tenure_core::{Attempt, NodeId, Outcome, Quorum};

use super::{
    check::returns,
    config::{NumbersConfig, NumbersFlaw},
    names::{AttemptTokens, BEGIN, HERE},
    state::{
        AttemptPhase, Confirm, LockRequest, ModelAttempt, NODES, NodeReply, NodeRow, NodeTraffic,
        Number, Quarantine, QuorumState, number, token,
    },
    step::QuorumStep,
    trace::trace,
};
use crate::{Violation, world::World};

/// A world of some size, with what is broken in it.
#[derive(Debug)]
pub(crate) struct QuorumModel {
    pub(crate) config: NumbersConfig,
    pub(crate) names: AttemptTokens,
}

impl World for QuorumModel {
    type State = QuorumState;
    type Step = QuorumStep;

    fn first(&self) -> QuorumState {
        QuorumState::new(self.config.attempts, self.config.last, self.config.losses)
    }

    fn steps(&self, state: &QuorumState, steps: &mut Vec<QuorumStep>) {
        self.possible(state, steps);
    }

    fn take(&self, state: &mut QuorumState, step: QuorumStep) -> Result<(), Violation> {
        match step {
            QuorumStep::Begin(who) => begin(state, who),
            QuorumStep::Run(who, node) => self.run_ask(state, who, node)?,
            QuorumStep::RunConfirm(who, node, round) => {
                self.run_confirm(state, who, node, round)?;
            }
            QuorumStep::Vote(who, node) => {
                if let LockRequest::Replied(reply) = state.line(who, node).ask {
                    self.vote(state, who, node, reply)?;
                }
            }
            QuorumStep::NoVote(who, node) => self.vote(state, who, node, NodeReply::Nothing)?,
            QuorumStep::Confirmed(who, node, round) => {
                self.confirmed(state, who, node, round, true)?;
            }
            QuorumStep::NotConfirmed(who, node, round) => {
                self.confirmed(state, who, node, round, false)?;
            }
            QuorumStep::Grace(who) => {
                if let Some(machine) = &mut state.attempts[usize::from(who)].machine
                    && let Some(timer) = machine.poll_timer()
                {
                    Rc::make_mut(machine).handle_time(timer);
                    self.go_on(state, who)?;
                }
            }
            QuorumStep::Crash(who) => {
                end(state, who, 0);
                over(state, who);
            }
            QuorumStep::GiveUp(who) => over(state, who),
            QuorumStep::Release(who, node) => self.run_release(state, who, node)?,
            QuorumStep::Vanish(node) => state.nodes[node].owner = None,
            QuorumStep::Lose(node) => lose(state, node),
            QuorumStep::Read(node, other) => {
                let last = state.nodes[other].last;
                if let Some(quarantine) = &mut state.nodes[node].quarantine {
                    quarantine.read |= 1 << other;
                    quarantine.largest = quarantine.largest.max(last);
                }
            }
            QuorumStep::Repair(node) => {
                let node = &mut state.nodes[node];
                node.last = node.quarantine.take().map_or(node.last, |s| s.largest.max(node.last));
            }
        }
        forget(state);
        if self.config.flaw == Some(NumbersFlaw::NoQuarantine) {
            let waits = |node: &NodeRow| node.quarantine.as_ref().is_some_and(|s| s.delay == 0);
            state
                .nodes
                .iter_mut()
                .filter(|node| waits(node))
                .for_each(|node| node.quarantine = None);
        }
        Ok(())
    }

    fn trace(&self, way: &[QuorumStep]) -> Vec<String> {
        trace(self, way)
    }
}

impl QuorumModel {
    pub(crate) fn new(config: NumbersConfig) -> Self {
        Self { config, names: AttemptTokens::new(config.attempts) }
    }

    /// A vote arrives, or is waited for no longer.
    fn vote(
        &self,
        state: &mut QuorumState,
        who: u8,
        node: usize,
        reply: NodeReply,
    ) -> Result<(), Violation> {
        let line = state.line(who, node);
        line.ask = match (line.ask, reply) {
            (LockRequest::Sent, _) => LockRequest::Late,
            (_, NodeReply::Ours(last)) => LockRequest::Done(last),
            _ => LockRequest::Done(0),
        };
        if let Some(machine) = &mut state.attempts[usize::from(who)].machine {
            Rc::make_mut(machine).handle_vote(HERE, NodeId(node), reply.vote());
        }
        self.go_on(state, who)
    }

    /// A confirmation is answered, or waited for no longer.
    fn confirmed(
        &self,
        state: &mut QuorumState,
        who: u8,
        node: usize,
        round: usize,
        arrives: bool,
    ) -> Result<(), Violation> {
        let confirm = &mut state.line(who, node).confirms[round];
        let answer = match std::mem::take(confirm) {
            Confirm::Replied(reply) if arrives => reply.confirmation(),
            Confirm::Sent(number) => {
                *confirm = Confirm::Late(number);
                None
            }
            Confirm::None | Confirm::Late(_) | Confirm::Replied(_) => None,
        };
        if let Some(machine) = &mut state.attempts[usize::from(who)].machine {
            Rc::make_mut(machine).handle_confirmed(HERE, NodeId(node), answer);
        }
        self.go_on(state, who)
    }

    /// Does what the attempt wants, after something has happened to it.
    fn go_on(&self, state: &mut QuorumState, who: u8) -> Result<(), Violation> {
        let attempt = &mut state.attempts[usize::from(who)];
        let Some(machine) = &mut attempt.machine else { return Ok(()) };
        while let Some((NodeId(node), least)) = Rc::make_mut(machine).poll_confirm() {
            let confirms = &mut attempt.lines[node].confirms;
            let free = confirms.iter_mut().find(|confirm| **confirm == Confirm::None);
            // A third at once there never is: a round asks each node once.
            *free.expect("two rounds") = Confirm::Sent(number(least));
        }
        let mut outcome = machine.outcome();
        let seen = machine.seen().map_or(0, number);
        if let Some(last) = self.too_soon(&attempt.lines) {
            outcome = Some(Outcome::Acquired(token(last)));
        }
        match outcome {
            None => Ok(()),
            Some(Outcome::Acquired(agreed)) => {
                end(state, who, seen);
                returns(state, who, number(agreed), self.config.timing)
            }
            Some(Outcome::Held(_) | Outcome::Unknown { .. } | Outcome::TooLate) => {
                end(state, who, seen);
                over(state, who);
                Ok(())
            }
        }
    }

    /// The number that a flaw is content with.
    fn too_soon(&self, lines: &[NodeTraffic; NODES]) -> Option<Number> {
        let reply = |line: &NodeTraffic| match line.ask {
            LockRequest::Done(number) if number > 0 => Some(number),
            _ => None,
        };
        let mut reply: Vec<_> = lines.iter().filter_map(reply).collect();
        reply.sort_unstable();
        match self.config.flaw? {
            NumbersFlaw::NaiveMaximum if reply.len() >= 2 => reply.last().copied(),
            NumbersFlaw::MiddleNumber if reply.len() == NODES => reply.get(1).copied(),
            _ => None,
        }
    }
}

/// An attempt begins, and asks all nodes.
fn begin(state: &mut QuorumState, who: u8) {
    let returned =
        |(other, attempt): (u8, &ModelAttempt)| u8::from(attempt.number.is_some()) << other;
    let earlier = (0..).zip(&state.attempts).map(returned).sum();
    let quorum = Quorum::new(NODES).expect("a quorum");
    let ttl = tenure_core::Ttl::new(Duration::from_secs(10)).expect("a TTL");
    let mut machine = Attempt::new(BEGIN, quorum, ttl, Duration::ZERO);
    let attempt = &mut state.attempts[usize::from(who)];
    while let Some(NodeId(node)) = machine.poll_ask() {
        attempt.lines[node].ask = LockRequest::Sent;
    }
    (attempt.phase, attempt.earlier) = (AttemptPhase::Asking, earlier);
    attempt.machine = Some(Rc::new(machine));
}

/// An attempt sends nothing else. What is under way may still be executed.
fn end(state: &mut QuorumState, who: u8, leaves: Number) {
    let attempt = &mut state.attempts[usize::from(who)];
    (attempt.machine, attempt.leaves) = (None, leaves);
    for line in &mut attempt.lines {
        line.ask = match line.ask {
            LockRequest::Sent | LockRequest::Late => LockRequest::Late,
            _ => LockRequest::Done(0),
        };
        for confirm in &mut line.confirms {
            *confirm = match *confirm {
                Confirm::Sent(number) | Confirm::Late(number) => Confirm::Late(number),
                _ => Confirm::None,
            };
        }
    }
}

/// Nothing hangs on an attempt any more.
fn over(state: &mut QuorumState, who: u8) {
    state.attempts[usize::from(who)].phase = AttemptPhase::Over;
    for node in &mut state.nodes {
        if let Some(quarantine) = &mut node.quarantine {
            quarantine.delay &= !(1 << who);
        }
    }
}

/// Forgets what can change nothing any more.
fn forget(state: &mut QuorumState) {
    for (who, attempt) in (0..).zip(&mut state.attempts) {
        if attempt.machine.is_some() || attempt.phase == AttemptPhase::Idle {
            continue;
        }
        let mut owns = false;
        for (line, node) in attempt.lines.iter_mut().zip(&state.nodes) {
            let may_own = node.owner == Some(who) || line.ask == LockRequest::Late;
            owns |= may_own;
            for confirm in &mut line.confirms {
                if matches!(confirm, Confirm::Late(number) if !may_own || *number <= node.last) {
                    *confirm = Confirm::None;
                }
            }
            line.tainted &= may_own;
        }
        if !owns {
            attempt.leaves = 0;
        }
    }
}

/// A node comes back without what it kept.
fn lose(state: &mut QuorumState, node: usize) {
    state.losses -= 1;
    let hangs = |(who, attempt): (u8, &ModelAttempt)| {
        u8::from(matches!(attempt.phase, AttemptPhase::Asking | AttemptPhase::Holding)) << who
    };
    let delay = (0..).zip(&state.attempts).map(hangs).sum();
    let quarantine = Some(Quarantine { delay, ..Quarantine::default() });
    state.nodes[node] = NodeRow { quarantine, ..NodeRow::default() };
}

impl QuorumState {
    pub(crate) fn line(&mut self, who: u8, node: usize) -> &mut NodeTraffic {
        &mut self.attempts[usize::from(who)].lines[node]
    }
}
