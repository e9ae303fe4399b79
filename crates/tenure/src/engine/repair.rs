//! Nodes that come to a lease after the others: late grants, and nodes that had lost their key.

use std::rc::Rc;

use tenure_core::{FencingToken, NodeId, Op, Reply};

use super::{lease::LeaseId, limits::op_limit, state::State};
use crate::{clock, error::NodeError, task};

impl State {
    /// Asks a node without a key of the lease for one, under the same token, unless its lock is set
    /// not to. It helps to outlast the next loss; what it says of the past is nothing.
    pub(super) fn repair(self: &Rc<Self>, id: LeaseId, node: NodeId) {
        if !self.leases.is_topped_up(id) {
            return;
        }
        let Some(cell) = self.leases.held(id) else { return };
        let Some(ttl) = self.leases.ttl(id) else { return };
        let Some(longest) = self.leases.max_ttl(id) else { return };
        self.leases.with_placement(id, |placement| placement.ask(node));
        let (key, token) = (cell.key().clone(), cell.token().clone());
        let proposal = Some(cell.number());
        let op = Op::Acquire { key, token, ttl, proposal, place: None };
        let limit = op_limit(&self.nodes, node, ttl);
        let answer = self.nodes.call_checked(node, op, longest, limit);
        let state = Rc::clone(self);
        task::spawn(async move {
            // Whether it counts, each renewal says.
            let answer = answer.await.map(|answer| answer.reply);
            state.handle_late_answer(id, node, &answer, false);
        });
    }

    /// Takes an answer to a request for the key of a lease that a majority has granted before: in
    /// time for the vote, or after it. If the lease was released meanwhile, a release is behind
    /// the request.
    pub(super) fn handle_late_answer(
        &self,
        id: LeaseId,
        node: NodeId,
        answer: &Result<Reply, NodeError>,
        is_in_time: bool,
    ) {
        let now = clock::now();
        match answer.as_ref().map(vote_of) {
            Ok(Reply::Granted(number)) => {
                self.leases.with_placement(id, |placement| match is_in_time {
                    true => placement.voted(node),
                    false => placement.reported(now, node, true),
                });
                self.confirm_late(id, node, *number);
            }
            Ok(Reply::Held(_) | Reply::Faulty(_)) => {
                self.leases.with_placement(id, |placement| placement.reported(now, node, false));
            }
            Err(error) if !error.may_be_applied() => {
                self.leases.with_placement(id, |placement| placement.reported(now, node, false));
            }
            Ok(_) | Err(_) => {
                self.leases.with_placement(id, |placement| placement.indeterminate(node));
            }
        }
    }

    /// Makes a node that granted under a smaller number than the lease's raise its own, so that it
    /// reports the lease's to a client that resumes the lease by its token.
    pub(super) fn confirm_late(&self, id: LeaseId, node: NodeId, its: FencingToken) {
        let Some(cell) = self.leases.held(id) else { return };
        let Some(ttl) = self.leases.ttl(id) else { return };
        if its < cell.number() {
            let (key, token, number) = (cell.key().clone(), cell.token().clone(), cell.number());
            let op = Op::Confirm { key, token, ttl, number };
            let answer = self.nodes.call(node, op, op_limit(&self.nodes, node, ttl));
            // Nothing depends on it now: the release brings the number, too.
            task::spawn(async move { drop(answer.await) });
        }
    }
}

/// The answer proper, without what a quorum reckons with.
pub(super) fn vote_of(reply: &Reply) -> &Reply {
    match reply {
        Reply::Voted { reply, .. } => reply,
        reply => reply,
    }
}
