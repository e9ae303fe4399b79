//! Resuming a lease that several nodes have.

use tenure_core::{Confirmation, FencingToken, Held, LockKey, NodeId, Op, Reply, Token, Ttl};

use super::{
    limits::Limit,
    majority::{KeyState, MajorityCount, QuorumResult},
    nodes::each,
    placement::NodeHold,
    state::State,
};
use crate::{
    clock,
    error::{NoQuorum, NodeError, NodeErrorKind},
    node::Residue,
};

/// What became of it.
pub(super) enum Resumed {
    Yes(FencingToken, Vec<NodeHold>),
    Held(Held),
    Free,
}

impl State {
    /// Asks every node, and waits for all of them: the number depends on it.
    ///
    /// The number is one that a majority has while the lock is the lease's there, as for an
    /// attempt, so no other lease ever has it: the largest that is reported, and the others are
    /// asked to follow. Any majority knows the one that the lease had, so it is never smaller.
    pub(super) async fn resumed(
        &self,
        key: &LockKey,
        token: &Token,
        (ttl, longest): (Ttl, Ttl),
        limit: Limit,
    ) -> Result<Resumed, NoQuorum> {
        let quorum = self.nodes.quorum();
        let op = Op::Resume { key: key.clone(), token: token.clone(), ttl };
        let call = |id| self.nodes.call_checked(id, op.clone(), longest, limit.span);
        let answers = each(self.nodes.iter().map(|(id, _)| call(id)).collect()).await;
        let now = clock::now();
        let mut majority = MajorityCount::new(quorum);
        let (mut numbers, mut placement, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut others = None;
        for ((id, node), answer) in self.nodes.iter().zip(answers) {
            let mut hold = NodeHold::default().taken_up();
            // What a node that may have forgotten leases says of this one proves nothing.
            let answer = answer.and_then(|answer| match (answer.reply, answer.ineligible) {
                (Reply::Granted(_), Some(ineligible)) => Err(ineligible),
                (reply, _) => Ok(reply),
            });
            let state = match answer {
                Ok(Reply::Granted(number)) => {
                    numbers.push((id, number));
                    hold = NodeHold::granted(Residue::default(), now).taken_up();
                    KeyState::Ours
                }
                Ok(Reply::Free) => KeyState::Gone,
                Ok(Reply::Held(held)) => {
                    let holder = held.holder.clone();
                    others = others.or(Some(held));
                    KeyState::Other(holder)
                }
                Ok(_) => {
                    KeyState::Indeterminate(NodeError::new(node.name(), NodeErrorKind::Protocol))
                }
                Err(error) => KeyState::Indeterminate(limit.explain(error)),
            };
            if let KeyState::Indeterminate(error) = &state {
                failed.push(error.clone());
                hold = NodeHold::unanswered();
            }
            majority.add(state);
            placement.push(hold);
        }
        let (granted, needed) = (numbers.len(), quorum.needed());
        match (majority.result(), others) {
            (Some(QuorumResult::Other(_)), Some(held)) => return Ok(Resumed::Held(held)),
            (Some(QuorumResult::Gone | QuorumResult::Other(_) | QuorumResult::GivenUp), _) => {
                return Ok(Resumed::Free);
            }
            (Some(QuorumResult::Ours), _) => {
                let agreed =
                    self.agreed(numbers, key, token, (ttl, longest), limit, &mut failed).await;
                if let Some(number) = agreed {
                    return Ok(Resumed::Yes(number, placement));
                }
            }
            _ => {}
        }
        Err(NoQuorum::new(granted, needed, failed))
    }

    /// Has a majority of the nodes that have the key agree on the largest of their numbers.
    async fn agreed(
        &self,
        mut numbers: Vec<(NodeId, FencingToken)>,
        key: &LockKey,
        token: &Token,
        (ttl, longest): (Ttl, Ttl),
        limit: Limit,
        failed: &mut Vec<NodeError>,
    ) -> Option<FencingToken> {
        // The second round is for a number that was raised meanwhile.
        for _ in 0..=2 {
            let of_all = numbers.iter().map(|(_, number)| *number);
            let number = tenure_core::agreeable(of_all, self.nodes.quorum().needed())?;
            let (agreed, behind): (Vec<_>, Vec<_>) =
                numbers.into_iter().partition(|(_, its)| *its == number);
            if agreed.len() >= self.nodes.quorum().needed() {
                return Some(number);
            }
            let confirm = || Op::Confirm { key: key.clone(), token: token.clone(), ttl, number };
            let call = |id| self.nodes.call_checked(id, confirm(), longest, limit.span);
            let answers = each(behind.iter().map(|(id, _)| call(*id)).collect()).await;
            numbers = agreed;
            for ((id, _), answer) in behind.into_iter().zip(answers) {
                let answer =
                    answer.and_then(|answer| answer.ineligible.map_or(Ok(answer.reply), Err));
                match answer {
                    Ok(Reply::Confirmed { answer: Confirmation::Ours(number), .. }) => {
                        numbers.push((id, number));
                    }
                    // It has lost the key, or does not know the number.
                    Ok(_) => {}
                    Err(error) => failed.push(limit.explain(error)),
                }
            }
        }
        None
    }
}
