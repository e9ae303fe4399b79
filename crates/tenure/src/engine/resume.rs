//! Taking up a lease again that several nodes have.

use std::time::Duration;

use tenure_core::{FencingToken, Held, LockKey, Op, Reply, Token, Ttl};

use super::{
    nodes::each,
    seats::Seat,
    state::State,
    tally::{Said, Tally, Verdict},
};
use crate::{
    clock,
    error::{NoQuorum, NodeError, NodeErrorKind},
    node::Standing,
};

/// What became of it.
pub(super) enum Resumed {
    Yes(FencingToken, Vec<Seat>),
    Held(Held),
    Free,
}

impl State {
    /// Asks every node, and waits for all of them: the number depends on it.
    ///
    /// The number is one that a majority has, so all later ones are larger: the largest such. When
    /// all nodes that agreed on the lease's number answer, it is that.
    pub(super) async fn resumed(
        &self,
        key: &LockKey,
        token: &Token,
        ttl: Ttl,
        limit: Duration,
    ) -> Result<Resumed, NoQuorum> {
        let quorum = self.nodes.quorum();
        let op = Op::Resume { key: key.clone(), token: token.clone(), ttl };
        let calls =
            self.nodes.iter().map(|(id, _)| self.nodes.call(id, op.clone(), limit)).collect();
        let answers = each(calls).await;
        let now = clock::now();
        let mut tally = Tally::new(quorum);
        let (mut numbers, mut seats, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut others = None;
        for ((_, node), answer) in self.nodes.iter().zip(answers) {
            let mut seat = Seat::default();
            let said = match answer {
                Ok(Reply::Granted(number)) => {
                    numbers.push(number);
                    seat = Seat::granted(Standing::default(), now);
                    Said::Ours
                }
                Ok(Reply::Free) => Said::Gone,
                Ok(Reply::Held(held)) => {
                    let holder = held.holder.clone();
                    others = others.or(Some(held));
                    Said::Other(holder)
                }
                Ok(_) => Said::Untold(NodeError::new(node.name(), NodeErrorKind::Protocol)),
                Err(error) => Said::Untold(error),
            };
            if let Said::Untold(error) = &said {
                failed.push(error.clone());
            }
            tally.add(said);
            seats.push(seat);
        }
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        let (granted, needed) = (numbers.len(), quorum.needed());
        match (tally.verdict(), numbers.get(needed - 1), others) {
            (Some(Verdict::Ours), Some(number), _) => Ok(Resumed::Yes(*number, seats)),
            (Some(Verdict::Other(_)), _, Some(held)) => Ok(Resumed::Held(held)),
            (Some(Verdict::Gone | Verdict::Other(_)), ..) => Ok(Resumed::Free),
            _ => Err(NoQuorum { granted, needed, failed }),
        }
    }
}
