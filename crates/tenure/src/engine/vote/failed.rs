//! How an attempt ended that did not get the lock, and why.

use tenure_core::{FencingToken, Held, Holder, NodeId, Outcome, Vote};

use super::{QuorumRound, error};
use crate::{
    clock,
    engine::{command::AcquireRequest, state::State},
    error::{NoQuorum, NodeErrorKind},
};

/// How a round ended that did not get the lock.
pub(in crate::engine) enum Failed {
    /// So many nodes refused that nobody else's answer matters.
    Held(Held),
    /// On so many nodes something stands at the key that is no lock, that no majority can grant.
    NotALock(Holder),
    /// Too many votes are unknown; and the holder on the other nodes, if their votes would have
    /// made a majority.
    Indeterminate(NoQuorum, Option<Held>),
}

impl QuorumRound {
    pub(super) fn ended(
        &self,
        state: &State,
        request: &AcquireRequest,
        outcome: Outcome,
    ) -> Result<FencingToken, Failed> {
        match outcome {
            Outcome::Acquired(number) => Ok(number),
            Outcome::Held(held) => Err(match self.no_lock(state, request) {
                Some(found) => Failed::NotALock(found),
                None => Failed::Held(held),
            }),
            Outcome::Unknown { .. } | Outcome::TooLate => Err(self.indeterminate(state)),
        }
    }

    /// What stands at the key that is no lock, where no majority is left without it.
    fn no_lock(&self, state: &State, request: &AcquireRequest) -> Option<Holder> {
        let found = |node_state: &tenure_core::NodeState| match node_state.vote() {
            Some(Vote::Refused { held, .. }) => {
                Some(held.holder.clone()).filter(|found| request.how.refuses(found))
            }
            _ => None,
        };
        let mut found = self.attempt.node_states().iter().filter_map(found);
        let quorum = state.nodes.quorum();
        found.nth(quorum.nodes() - quorum.needed())
    }

    /// What each node said, as far as it has by now.
    fn indeterminate(&self, state: &State) -> Failed {
        let needed = state.nodes.quorum().needed();
        let is_over = clock::now() >= self.sent() + self.limit.span;
        let (granted, mut failed, mut refused) = (self.granted(), Vec::new(), Vec::new());
        let nodes = self.nodes.iter().zip(self.attempt.node_states()).enumerate();
        for (id, (node, node_state)) in nodes.map(|(index, node)| (NodeId(index), node)) {
            let trouble = node.trouble.as_ref().or(node.dead.as_ref()).cloned();
            match node_state.vote() {
                Some(Vote::Refused { held, .. }) => refused.push(held.clone()),
                Some(Vote::Granted(_)) => failed.extend(trouble),
                Some(Vote::Unknown) | None => {
                    let silent = || {
                        let late = error(state, id, NodeErrorKind::TimedOut).maybe_applied();
                        if is_over {
                            self.limit.explain(late)
                        } else {
                            late.with_source("the others had decided")
                        }
                    };
                    failed.push(trouble.unwrap_or_else(silent));
                }
            }
        }
        let is_contended = granted < needed && granted + refused.len() >= needed;
        let held = refused.into_iter().next().filter(|_| is_contended);
        Failed::Indeterminate(NoQuorum::new(granted, needed, failed), held)
    }
}
