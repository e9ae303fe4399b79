//! One round of votes for one acquisition.

mod node_state;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
mod vote;

use std::{hash::Hash, time::Duration};

use self::node_state::Refuser;
pub use self::{
    node_state::NodeState,
    vote::{Outcome, Vote},
};
use crate::{Confirmation, FencingToken, NodeId, Quorum, Timestamp, Ttl, agreeable};

/// One round of votes, and the agreement on a number. It has a token that no later attempt uses.
///
/// # The number
///
/// Each node numbers its grant by its own counter, and counters differ: after an attempt that
/// reached some of them only, say. The attempt is under a number when a majority of the nodes *had
/// that very last number at a moment when the lock was ours there*. Grants that happen to be equal
/// say so at once. Else the nodes are asked to raise their last number to the largest one that is
/// not [far ahead](agreeable) of what a majority can have, if they still have our key; so the
/// unequal ones agree, and a second round trip is all it costs. Twice at most: then the attempt
/// fails.
///
/// Why that is enough, whatever clocks do: two attempts with a majority each share a node.
/// There one had the lock before the other, and last numbers never fall and grow by each grant. So
/// the later grant is above the number of the earlier attempt; and its own attempt's number is at
/// least that grant's, or the node would not have had it while the lock was its. Equal numbers
/// alone, or a largest one that is written to any holder's node, would not do: `crates/sim`
/// has the counter-examples.
///
/// # Its driver must
///
/// * call [`Attempt::new`] before the first request is queued: validity counts from there;
/// * ask each node that [`Attempt::poll_ask`] names, once, and hand in what it answers, or
///   [`Vote::Unknown`] when its time limit is over;
/// * after each answer ask each node that [`Attempt::poll_confirm`] names for a confirmation,
///   behind the request on the same connection, and hand in the answer, or that there was none;
/// * call [`Attempt::handle_time`] when it is the time of [`Attempt::poll_timer`];
/// * stop when [`Attempt::outcome`] is there, and then, unless the lock was acquired, send a
///   release to each node that [`Attempt::poll_undo`] names, behind the request on the same
///   connection, again and again until the node answers or the TTL is over.
///
/// Votes may be handed in after the outcome. It does not change; but a node that granted late
/// [holds](Attempt::holds) the key, and belongs to the lease.
#[derive(Clone, Debug)]
pub struct Attempt {
    quorum: Quorum,
    sent: Timestamp,
    /// An outcome at or after this is too late: what is left is less than is wanted.
    latest: Timestamp,
    asked: usize,
    undone: usize,
    nodes: Vec<NodeState>,
    /// The largest number that any node reported.
    seen: Option<FencingToken>,
    /// Until when to wait for equal numbers before the first round of confirmations.
    grace: Option<Timestamp>,
    /// The number that nodes are asked to confirm.
    confirming: Option<FencingToken>,
    rounds: u8,
    outcome: Option<Outcome>,
}

/// Rounds of confirmations. The second is for a node whose grant was lost and was above the
/// largest that arrived; or for lost replies.
const MAX_ROUNDS: u8 = 2;

impl Attempt {
    /// Starts a round; `now` is before the first request is queued. A lock that has less than
    /// `min_validity` left when the answers are here counts as not acquired.
    #[must_use]
    pub fn new(now: Timestamp, quorum: Quorum, ttl: Ttl, min_validity: Duration) -> Self {
        Self {
            quorum,
            sent: now,
            latest: now + ttl.validity().saturating_sub(min_validity),
            asked: 0,
            undone: 0,
            nodes: vec![NodeState::default(); quorum.nodes()],
            seen: None,
            grace: None,
            confirming: None,
            rounds: 0,
            outcome: None,
        }
    }

    /// The next node to ask, or `None` when all have been named.
    #[must_use]
    pub fn poll_ask(&mut self) -> Option<NodeId> {
        let node = (self.asked < self.quorum.nodes()).then_some(NodeId(self.asked));
        self.asked += usize::from(node.is_some());
        node
    }

    /// Takes a node's vote at `now`. A node that has voted cannot change its vote; one whose vote
    /// is unknown can still give it.
    pub fn handle_vote(&mut self, now: Timestamp, node: NodeId, vote: Vote) {
        if let Vote::Granted(number) | Vote::Refused { last_number: Some(number), .. } = vote {
            self.seen = self.seen.max(Some(number));
        }
        if let Some(state) = self.nodes.get_mut(node.0) {
            state.record_vote(vote);
            self.settle(now);
        }
    }

    /// The next node to ask for a confirmation, and the number it is to confirm; `None` when there
    /// is none for now.
    #[must_use]
    pub fn poll_confirm(&mut self) -> Option<(NodeId, FencingToken)> {
        let number = self.confirming.filter(|_| self.outcome.is_none())?;
        let (index, node) = self.nodes.iter_mut().enumerate().find(|(_, node)| node.to_confirm)?;
        node.to_confirm = false;
        node.unanswered += 1;
        Some((NodeId(index), number))
    }

    /// Takes a node's answer to a confirmation at `now`; `None` when its time limit is over, or
    /// when the reply does not say.
    pub fn handle_confirmed(&mut self, now: Timestamp, node: NodeId, answer: Option<Confirmation>) {
        if let Some(Confirmation::Ours(number)) = answer {
            self.seen = self.seen.max(Some(number));
        }
        if let Some(state) = self.nodes.get_mut(node.0) {
            state.confirmed(answer);
            self.settle(now);
        }
    }

    /// When to call [`Attempt::handle_time`] if nothing happens before; `None` when it is settled.
    ///
    /// It waits for one more node to give an equal number; no longer than the others took to
    /// answer, since a confirmation would cost that again.
    #[must_use]
    pub fn poll_timer(&self) -> Option<Timestamp> {
        let grace = self.grace.filter(|_| self.rounds == 0);
        self.outcome.is_none().then(|| grace.unwrap_or(self.latest).min(self.latest))
    }

    /// Time has passed.
    pub fn handle_time(&mut self, now: Timestamp) {
        self.settle(now);
    }

    /// The outcome, as soon as no further vote can change it.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome.clone()
    }

    /// The largest number reported by a node. The next attempt proposes a larger one; a release may
    /// leave it behind, so that all nodes give the same one next.
    #[must_use]
    pub const fn seen(&self) -> Option<FencingToken> {
        self.seen
    }

    /// A node's last number while our key was there, if it reported one.
    #[must_use]
    pub fn number(&self, node: NodeId) -> Option<FencingToken> {
        self.nodes.get(node.0).and_then(NodeState::number)
    }

    /// Whether a node has our key, if it reported that.
    #[must_use]
    pub fn holds(&self, node: NodeId) -> bool {
        self.number(node).is_some()
    }

    /// The next node that must be sent a release after a failed attempt: one that granted, whose
    /// outcome is unknown, or that has not answered. A node that refused has no key of ours.
    #[must_use]
    pub fn poll_undo(&mut self) -> Option<NodeId> {
        while self.undone < self.asked {
            let node = NodeId(self.undone);
            self.undone += 1;
            let vote = self.nodes.get(node.0).and_then(|node| node.vote.as_ref());
            if !matches!(vote, Some(Vote::Refused { .. })) {
                return Some(node);
            }
        }
        None
    }

    /// Whether the votes so far are split: some refused, and no majority for one
    /// holder. Then there may be no holder, and no end to wait for.
    ///
    /// Several may have one label, as those of one process do; their numbers differ.
    #[must_use]
    pub fn is_split(&self) -> bool {
        let holders = || self.nodes.iter().filter_map(NodeState::refuser);
        let one = |of: &Refuser<'_>| holders().filter(|other| of.may_be(other)).count();
        let most = holders().map(|holder| one(&holder)).max().unwrap_or(0);
        let granted = self.count(|node| node.number().is_some());
        most < self.quorum.needed() && most > 0 && (most < holders().count() || granted > 0)
    }

    /// When the attempt began: validity counts from here.
    #[must_use]
    pub const fn sent(&self) -> Timestamp {
        self.sent
    }

    /// What is known of each node, in order.
    #[must_use]
    pub fn node_states(&self) -> &[NodeState] {
        &self.nodes
    }

    /// What is known beside the nodes, to compare attempts; all but what was
    /// [seen](Attempt::seen).
    #[must_use]
    pub fn progress(&self) -> impl Hash + Eq + '_ {
        let Self { grace, confirming, rounds, outcome, .. } = self;
        (grace, confirming, rounds, outcome)
    }

    fn settle(&mut self, now: Timestamp) {
        if self.outcome.is_some() {
            return;
        }
        let needed = self.quorum.needed();
        let granted = self.count(|node| node.number().is_some());
        if let Some(number) = self.agreed() {
            let is_late = now >= self.latest;
            self.outcome = Some(if is_late { Outcome::TooLate } else { Outcome::Acquired(number) });
        } else if now >= self.latest {
            self.outcome = Some(match granted >= needed {
                true => Outcome::TooLate,
                false => self.failed(granted),
            });
        } else if granted >= needed {
            self.agree(now, granted);
        } else {
            self.give_up_if_certain(granted);
        }
    }

    /// The number that a majority had while the lock was ours there.
    fn agreed(&self) -> Option<FencingToken> {
        let numbers = self.nodes.iter().filter_map(NodeState::number);
        numbers.filter(|&number| self.having(number) >= self.quorum.needed()).max()
    }

    /// A majority granted, under different numbers.
    fn agree(&mut self, now: Timestamp, granted: usize) {
        let needed = self.quorum.needed();
        let may_confirm = |node: &NodeState, number| {
            node.number().is_none_or(|known| known < number) && node.may_confirm()
        };
        let goes_on = match self.confirming {
            None => {
                let equal = self.nodes.iter().filter_map(NodeState::number);
                let equal = equal.map(|number| self.having(number)).max().unwrap_or(0);
                let is_possible = equal + self.count(NodeState::is_open) >= needed;
                let grace = *self.grace.get_or_insert_with(|| now + now.since(self.sent));
                is_possible && now < grace
            }
            Some(number) => {
                self.having(number) + self.count(|node| may_confirm(node, number)) >= needed
            }
        };
        if goes_on {
            return;
        }
        if self.rounds == MAX_ROUNDS {
            self.outcome = Some(self.failed(granted));
            return;
        }
        let numbers = self.nodes.iter().filter_map(NodeState::number);
        let Some(number) = agreeable(numbers, needed) else { return };
        self.rounds += 1;
        self.confirming = Some(number);
        for node in &mut self.nodes {
            node.to_confirm = node.can_be_asked(number);
        }
        // Nobody is left to ask: this round is over, too.
        self.agree(now, granted);
    }

    /// No majority granted. It fails when none can any more, and only as it will have failed in the
    /// end: all votes decide whether that is contention or a missing quorum.
    fn give_up_if_certain(&mut self, granted: usize) {
        let open = self.count(|node| {
            node.number().is_none()
                && node.refusal().is_none()
                && (node.is_open() || node.may_confirm())
        });
        let refused = self.count(|node| node.refusal().is_some());
        let blocking = self.blocking();
        let is_certain = refused >= blocking || refused + open < blocking;
        if granted + open < self.quorum.needed() && is_certain {
            self.outcome = Some(self.failed(granted));
        }
    }

    fn failed(&self, granted: usize) -> Outcome {
        let refusals = || self.nodes.iter().filter_map(NodeState::refusal);
        let spare = self.quorum.nodes() - self.quorum.needed();
        match node_state::last_to_end(refusals(), spare) {
            Some(held) => Outcome::Held(held.clone()),
            None => Outcome::Unknown { granted, needed: self.quorum.needed() },
        }
    }

    /// So many refusals leave no majority.
    const fn blocking(&self) -> usize {
        self.quorum.nodes() - self.quorum.needed() + 1
    }

    fn having(&self, number: FencingToken) -> usize {
        self.count(|node| node.number() == Some(number))
    }

    fn count(&self, is: impl Fn(&NodeState) -> bool) -> usize {
        self.nodes.iter().filter(|node| is(node)).count()
    }
}
