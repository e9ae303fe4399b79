//! The nodes of a client, and how many of them decide.

use std::{cell::RefCell, future::poll_fn, iter, rc::Rc, task::Poll};

use tenure_core::{NodeId, Quorum, Reply};

use crate::{
    address::Address,
    clock::{self, Timers},
    error::NodeError,
    node::{self, Call, Node},
};

/// One node or several that vote, in the order of their addresses.
///
/// One node is a special case in one thing: it alone has a queue. Several would each have an order
/// of their own, so their waiters are told of each release, and poll.
#[derive(Debug)]
pub(super) struct Nodes {
    first: Rc<dyn Node>,
    others: Vec<Rc<dyn Node>>,
    /// How far each node's wall clock is ahead of the clock of leases, in microseconds, where it
    /// has told.
    ahead: RefCell<Vec<Option<u64>>>,
}

impl Nodes {
    /// Opens them; `None` without an address. Nothing is sent.
    pub(super) fn open(addresses: &[Address], timers: &Rc<Timers>) -> Option<Self> {
        let mut nodes = addresses.iter().map(|address| node::open(address, timers));
        let ahead = RefCell::new(vec![None; addresses.len()]);
        Some(Self { first: nodes.next()?, others: nodes.collect(), ahead })
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

    /// A node has just told its wall clock, in microseconds.
    pub(super) fn set_clock(&self, id: NodeId, wall_us: u64) {
        if let Some(ahead) = self.ahead.borrow_mut().get_mut(id.0) {
            *ahead = Some(wall_us.saturating_sub(now_us()));
        }
    }

    /// What the nodes' wall clocks show now, in microseconds: the median of what they told, so that
    /// one wrong clock of three changes nothing. This host's own until one has told.
    pub(super) fn wall_us(&self) -> u64 {
        let mut ahead: Vec<_> = self.ahead.borrow().iter().flatten().copied().collect();
        ahead.sort_unstable();
        let median = ahead.len().checked_sub(1).and_then(|last| ahead.get(last / 2));
        median.map_or_else(|| clock::node_time().wall_us, |ahead| now_us() + ahead)
    }

    /// Whether the program may end now, as far as the nodes are concerned.
    pub(super) fn may_be_left(&self) -> bool {
        self.iter().all(|(_, node)| node.may_be_left())
    }
}

/// The clock of leases, in microseconds.
fn now_us() -> u64 {
    clock::now().as_nanos() / 1_000
}

/// The answers to calls that go on at the same time, in the order of the calls.
pub(super) async fn each(mut calls: Vec<Call>) -> Vec<Result<Reply, NodeError>> {
    let mut answers: Vec<_> = calls.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut is_open = false;
        for (call, answer) in calls.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match call.as_mut().poll(cx) {
                    Poll::Ready(result) => *answer = Some(result),
                    Poll::Pending => is_open = true,
                }
            }
        }
        if is_open { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    answers.into_iter().flatten().collect()
}
