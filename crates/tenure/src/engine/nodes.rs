//! The nodes of a client, and how many of them decide.

use std::{
    cell::RefCell, collections::BTreeSet, future::poll_fn, iter, pin::Pin, rc::Rc, sync::Arc,
    task::Poll, time::Duration,
};

use tenure_core::{Eligibility, FencingToken, MarkerMode, NodeId, Op, Quorum, Reply, Ttl};

use super::voters::Voters;
use crate::{
    address::Address,
    clock::{self, Timers},
    error::{NodeError, NodeErrorKind},
    event,
    node::{self, Node, PendingReply},
    quiet::Work,
};

/// One node or several that vote, in the order of their addresses.
///
/// One node is a special case in one thing: it alone has a queue. Several would each have an order
/// of their own, so their waiters are notified of each release, and poll.
#[derive(Debug)]
pub(super) struct Nodes {
    first: Rc<dyn Node>,
    others: Vec<Rc<dyn Node>>,
    voters: Rc<Voters>,
    /// The nodes whose numbers were far ahead of their clocks when they last reported both.
    ahead: RefCell<BTreeSet<usize>>,
}

impl Nodes {
    /// Opens them; `None` without an address. Nothing is sent.
    pub(super) fn open(
        addresses: &[Address],
        timers: &Rc<Timers>,
        work: Option<&Arc<Work>>,
    ) -> Option<Self> {
        let is_sole = addresses.len() == 1;
        let open = |address| node::open(address, timers, is_sole, work);
        let nodes: Vec<_> = addresses.iter().map(open).collect();
        let settings = addresses.iter().map(|of| (of.database(), of.is_durable()));
        let all = nodes.iter().cloned();
        let all = all.zip(settings).map(|(node, (db, is_durable))| (node, db, is_durable));
        let voters = Rc::new(Voters::new(all));
        let mut nodes = nodes.into_iter();
        let ahead = RefCell::default();
        Some(Self { first: nodes.next()?, others: nodes.collect(), voters, ahead })
    }

    /// The first of them: the one with the queue, where it is the only one.
    pub(super) fn first(&self) -> &Rc<dyn Node> {
        &self.first
    }

    /// The only node, if there is but one.
    pub(super) fn sole(&self) -> Option<&Rc<dyn Node>> {
        self.others.is_empty().then_some(&self.first)
    }

    pub(super) fn quorum(&self) -> Quorum {
        Quorum::new(self.others.len() + 1).unwrap_or(Quorum::ONE)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &Rc<dyn Node>)> {
        let nodes = iter::once(&self.first).chain(&self.others);
        nodes.enumerate().map(|(index, node)| (NodeId(index), node))
    }

    /// The node at this place, which must be one of them.
    pub(super) fn get(&self, id: NodeId) -> &Rc<dyn Node> {
        id.0.checked_sub(1).and_then(|index| self.others.get(index)).unwrap_or(&self.first)
    }

    /// Asks one of them; see [`Node::call`]. What the second address of a server says is an error,
    /// whatever it is.
    pub(super) fn call(&self, id: NodeId, op: Op, limit: Duration) -> PendingReply {
        if self.sole().is_some() {
            return self.get(id).call(op, limit);
        }
        let sent = clock::now();
        let voters = Rc::clone(&self.voters);
        // Once that is known only its clock is asked: a release, say, would be carried out on the
        // server that counts, which would then say that there is no key. It does show, though, when
        // the address leads elsewhere one day.
        let (op, refusal) = match voters.is_counted(id) {
            Ok(()) => (op, None),
            Err(error) => (Op::Clock, Some(error)),
        };
        let call = self.get(id).call(op, limit);
        Box::pin(async move {
            let answer = call.await;
            let counted = voters.answered(id, sent, &answer);
            let reply = answer?;
            counted?;
            refusal.map_or(Ok(reply), Err)
        })
    }

    /// As [`Nodes::call`], for what may count as a vote, where nobody takes the lock with a longer
    /// TTL: the answer comes with whether it does.
    pub(super) fn call_checked(
        &self,
        id: NodeId,
        op: Op,
        longest: Ttl,
        limit: Duration,
    ) -> CheckedCall {
        self.call_marker(id, op, longest, MarkerMode::Check, limit)
    }

    /// As [`Nodes::call_checked`], with this much of the marker's rule.
    pub(super) fn call_marker(
        &self,
        id: NodeId,
        op: Op,
        longest: Ttl,
        mode: MarkerMode,
        limit: Duration,
    ) -> CheckedCall {
        // An only node has nobody to outvote; but it may become one of several.
        let is_checked = self.sole().is_none() || mode == MarkerMode::Open;
        let op = match self.voters.check(id, longest, mode) {
            Some(check) if is_checked => op.checked(check),
            _ => op,
        };
        let (call, voters) = (self.call(id, op, limit), Rc::clone(&self.voters));
        Box::pin(async move {
            Ok(match call.await? {
                Reply::Checked { eligibility, reply } => {
                    let ineligible = voters.marked(id, longest, eligibility).err();
                    Checked {
                        reply: *reply,
                        is_opened: eligibility == Eligibility::Opened,
                        ineligible,
                    }
                }
                reply => Checked { reply, is_opened: false, ineligible: None },
            })
        })
    }

    /// Whether a grant of this node is a vote, where nobody takes the lock with a longer TTL, as
    /// far as its clock and its address go.
    ///
    /// # Errors
    ///
    /// Why not, and until when.
    pub(super) fn judge(&self, id: NodeId, longest: Ttl) -> Result<(), NodeError> {
        self.voters.judge(id, longest)
    }

    /// What is wrong with a node whose last number is far ahead of its clock: it does not count
    /// where the others are near theirs. Logged once each time that it comes to be so.
    pub(super) fn number_trouble(
        &self,
        id: NodeId,
        last: Option<FencingToken>,
        wall_us: u64,
    ) -> Option<NodeError> {
        let ahead = last.filter(|last| tenure_core::is_far_ahead(*last, None, wall_us));
        let mut known = self.ahead.borrow_mut();
        let Some(last) = ahead else {
            known.remove(&id.0);
            return None;
        };
        let name = self.get(id).name();
        let words = format!("its last number is {last}, and its clock shows {wall_us} \u{b5}s");
        if known.insert(id.0) {
            event::node_warning(name, event::NodeWarning::NumberAhead, &words);
        }
        Some(NodeError::new(name, NodeErrorKind::NumberAhead).with_source(words))
    }

    /// What most of the nodes' wall clocks show now, in microseconds. This host's own until one has
    /// reported it.
    pub(super) fn wall_us(&self) -> u64 {
        let now_us = clock::now().as_nanos() / 1_000;
        let ahead = self.voters.ahead_us();
        ahead
            .map_or_else(|| clock::node_time().wall_us, |ahead| now_us.saturating_add_signed(ahead))
    }

    /// Whether the program may end now, as far as the nodes are concerned.
    pub(super) fn is_drained(&self) -> bool {
        self.iter().all(|(_, node)| node.is_drained())
    }
}

/// An answer, and whether it counts.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    pub(super) reply: Reply,
    /// The node's marker was opened by hand just now.
    pub(super) is_opened: bool,
    /// Why what it says of our own key is no vote; what it says of another's is true either way.
    pub(super) ineligible: Option<NodeError>,
}

/// A checked answer to come.
pub(super) type CheckedCall = Pin<Box<dyn Future<Output = Result<Checked, NodeError>>>>;

/// What nodes answered.
pub(super) type Answers = Vec<Result<Reply, NodeError>>;

/// The answers to calls that go on at the same time, in the order of the calls.
pub(super) async fn each<T: Clone>(calls: Vec<Answering<T>>) -> Vec<T> {
    each_until(calls, |_| false).await
}

/// An answer to come.
type Answering<T> = Pin<Box<dyn Future<Output = T>>>;

/// As [`each`], but no more than are enough.
pub(super) async fn each_until<T: Clone>(
    mut calls: Vec<Answering<T>>,
    are_enough: impl Fn(Vec<T>) -> bool,
) -> Vec<T> {
    let mut answers: Vec<_> = calls.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let (mut is_open, mut is_new) = (false, false);
        for (call, answer) in calls.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match call.as_mut().poll(cx) {
                    Poll::Ready(result) => (*answer, is_new) = (Some(result), true),
                    Poll::Pending => is_open = true,
                }
            }
        }
        let is_over = !is_open || is_new && are_enough(answers.iter().flatten().cloned().collect());
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn a_call_waits_for_no_more_replies_than_needed() {
        let free = || -> PendingReply { Box::pin(ready(Ok(Reply::Free))) };
        let calls = vec![free(), Box::pin(pending()), free()];
        let two = each_until(calls, |answers| answers.len() == 2);
        assert_eq!(smol::block_on(two).len(), 2);
        assert_eq!(smol::block_on(each(vec![free(), free(), free()])).len(), 3);
    }
}
