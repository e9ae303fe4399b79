//! What a node does with a request.

use tenure_core::{Confirmation, FenceFault, Op, Reply};

use super::{
    config::NumbersFlaw,
    model::QuorumModel,
    state::{Confirm, FAR, LockRequest, NodeReply, NodeRow, Number, QuorumState, number, token},
};
use crate::{Kind, Violation};

impl QuorumModel {
    /// A node carries out a request for the lock.
    pub(crate) fn run_ask(
        &self,
        state: &mut QuorumState,
        who: u8,
        node: usize,
    ) -> Result<(), Violation> {
        let proposals = &self.config.proposals;
        let proposed = proposals[usize::from(who).min(proposals.len() - 1)];
        let op = Op::Acquire {
            key: self.names.key.clone(),
            token: self.names.token(who),
            ttl: self.names.ttl,
            proposal: Some(token(proposed)),
            place: None,
        };
        let is_quarantined = state.nodes[node].quarantine.is_some();
        let reply = match self.names.carry_out(&mut state.nodes[node], &op)? {
            Reply::Voted { reply, .. } => match *reply {
                Reply::Granted(last) => NodeReply::Ours(number(last)),
                Reply::Held(_) => NodeReply::Other,
                reply => return Err(out_of_place(&reply)),
            },
            reply => return Err(out_of_place(&reply)),
        };
        let line = state.line(who, node);
        line.tainted |= is_quarantined;
        let counts = !is_quarantined || reply == NodeReply::Other;
        line.ask = match line.ask {
            LockRequest::Sent => {
                LockRequest::Replied(if counts { reply } else { NodeReply::Nothing })
            }
            _ => LockRequest::Done(0),
        };
        Ok(())
    }

    /// A node carries out a confirmation.
    pub(crate) fn run_confirm(
        &self,
        state: &mut QuorumState,
        who: u8,
        node: usize,
        round: usize,
    ) -> Result<(), Violation> {
        let before = state.nodes[node].last;
        let confirm = std::mem::take(&mut state.line(who, node).confirms[round]);
        let (least, is_replied) = match confirm {
            Confirm::Sent(least) => (least, true),
            Confirm::Late(least) => (least, false),
            Confirm::None | Confirm::Replied(_) => return Ok(()),
        };
        let mut reply = self.confirm(&mut state.nodes[node], who, least)?;
        not_spoiled(before, &state.nodes[node])?;
        let is_quarantined = state.nodes[node].quarantine.is_some();
        let line = state.line(who, node);
        if is_quarantined || line.tainted {
            reply = NodeReply::Nothing;
        }
        let granted = matches!(line.ask, LockRequest::Done(last) if last > 0);
        if self.config.flaw == Some(NumbersFlaw::CountLostGrants)
            && !granted
            && matches!(reply, NodeReply::Ours(_))
        {
            reply = NodeReply::Ours(least);
        }
        if is_replied {
            line.confirms[round] = Confirm::Replied(reply);
        }
        Ok(())
    }

    fn confirm(&self, node: &mut NodeRow, who: u8, least: Number) -> Result<NodeReply, Violation> {
        self.forget_bound(node, who, least);
        if self.config.flaw == Some(NumbersFlaw::UnconditionalWriteBack) {
            node.last = node.last.max(least);
            return Ok(NodeReply::Ours(least));
        }
        let op = Op::Confirm {
            key: self.names.key.clone(),
            token: self.names.token(who),
            ttl: self.names.ttl,
            number: token(least),
        };
        match self.names.carry_out(node, &op)? {
            Reply::Confirmed { answer: Confirmation::Ours(last), .. } => {
                Ok(NodeReply::Ours(number(last)))
            }
            Reply::Confirmed { answer: Confirmation::Gone, .. } => Ok(NodeReply::Gone),
            Reply::Confirmed { answer: Confirmation::Other(_), .. } => Ok(NodeReply::Other),
            // Its own number is not reported.
            Reply::Confirmed { answer: Confirmation::Faulty(FenceFault::Ahead), .. } => {
                Ok(NodeReply::Nothing)
            }
            reply => Err(out_of_place(&reply)),
        }
    }

    /// A node carries out a release.
    pub(crate) fn run_release(
        &self,
        state: &mut QuorumState,
        who: u8,
        node: usize,
    ) -> Result<(), Violation> {
        let before = state.nodes[node].last;
        let leaves = state.attempts[usize::from(who)].leaves;
        self.forget_bound(&mut state.nodes[node], who, leaves);
        let op = Op::Release {
            key: self.names.key.clone(),
            token: self.names.token(who),
            entries: Vec::new(),
            leave_tombstone: false,
            yield_ms: 0,
            number: Some(token(leaves)),
        };
        self.names.carry_out(&mut state.nodes[node], &op)?;
        not_spoiled(before, &state.nodes[node])
    }

    /// The flaw by which a number is written however far ahead it is.
    fn forget_bound(&self, node: &mut NodeRow, who: u8, number: Number) {
        if self.config.flaw == Some(NumbersFlaw::NoBound) && node.owner == Some(who) {
            node.last = node.last.max(number);
        }
    }
}

/// A node whose numbers were near its clock still has such: only its own may be far ahead.
fn not_spoiled(before: Number, node: &NodeRow) -> Result<(), Violation> {
    if before < FAR && node.last >= FAR {
        let words = format!("{} after {before}", node.last);
        return Err(Violation::new(Kind::Spoiled, words));
    }
    Ok(())
}

fn out_of_place(reply: &Reply) -> Violation {
    Violation::new(Kind::Row, format!("the reply {reply:?}"))
}
