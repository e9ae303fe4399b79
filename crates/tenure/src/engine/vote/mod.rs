//! One attempt at several nodes, all of them at once.

mod failed;

use std::rc::Rc;

use tenure_core::{
    Attempt, Confirmation, FenceFault, FencingToken, NodeId, Op, Outcome, Reply, Timestamp, Token,
    Vote,
};
use tokio::sync::mpsc;

pub(super) use self::failed::Failed;
use super::{
    command::{AcquireRequest, How},
    lease::LeaseId,
    limits::{Limit, MIN_LIMIT},
    node_request::{NodeRequest, NodeResponse, forward},
    placement::NodeHold,
    state::State,
};
use crate::{
    clock,
    error::{NodeError, NodeErrorKind},
    node::Residue,
    task,
};

/// One attempt: the answers of the nodes go into core's [`Attempt`], and what it asks goes out.
///
/// Each node has its own time limit from the beginning, so none waits for another. Nothing waits
/// for a node that is out of reach, nor long for one that was when it was last tried and is being
/// tried again: it still gets the request, and a grant that comes late becomes part of the lease.
pub(super) struct QuorumRound {
    attempt: Attempt,
    limit: Limit,
    nodes: Vec<NodeRequest>,
    sender: mpsc::UnboundedSender<(NodeId, NodeResponse)>,
    responses: mpsc::UnboundedReceiver<(NodeId, NodeResponse)>,
}

impl QuorumRound {
    /// Asks every node. The requests are queued when this returns.
    pub(super) fn begin(
        state: &State,
        request: &AcquireRequest,
        token: &Token,
        proposal: FencingToken,
        limit: Limit,
    ) -> Self {
        let sent = clock::now();
        let AcquireRequest { settings, min_validity, .. } = request;
        let least = min_validity.unwrap_or_default();
        let mut attempt = Attempt::new(sent, state.nodes.quorum(), settings.ttl, least);
        let (sender, responses) = mpsc::unbounded_channel();
        let mut nodes = Vec::new();
        while let Some(id) = attempt.poll_ask() {
            let (key, token, ttl) = (request.key.clone(), token.clone(), settings.ttl);
            let op = match request.how {
                How::Steal { any } => Op::Steal { key, token, ttl, any },
                How::Try | How::Resume(_) => {
                    Op::Acquire { key, token, ttl, proposal: Some(proposal), place: None }
                }
            };
            let ineligible = state.nodes.judge(id, request.max_ttl).err();
            let dead = state.nodes.get(id).trouble();
            nodes.push(NodeRequest { dead, ineligible, ..NodeRequest::default() });
            let call = state.nodes.call_checked(id, op, request.max_ttl, limit.span);
            forward(&sender, id, NodeResponse::Vote, call);
        }
        let mut round = Self { attempt, limit, nodes, sender, responses };
        round.give_up_the_dead(|id| state.nodes.get(id).is_out_of_reach());
        round
    }

    /// When it began: validity counts from here.
    pub(super) fn sent(&self) -> Timestamp {
        self.attempt.sent()
    }

    /// Whether the votes are split.
    pub(super) fn is_split(&self) -> bool {
        self.attempt.is_split()
    }

    /// The largest number that any node reported.
    pub(super) fn seen(&self) -> Option<FencingToken> {
        self.attempt.seen()
    }

    /// How many nodes have granted it.
    fn granted(&self) -> usize {
        (0..self.nodes.len()).filter(|index| self.attempt.holds(NodeId(*index))).count()
    }

    /// Waits until no further answer can change the outcome.
    pub(super) async fn settle(
        &mut self,
        state: &State,
        request: &AcquireRequest,
        token: &Token,
    ) -> Result<FencingToken, Failed> {
        let patience = self.sent() + MIN_LIMIT;
        loop {
            while let Some((id, number)) = self.attempt.poll_confirm() {
                let (key, token, ttl) = (request.key.clone(), token.clone(), request.settings.ttl);
                let op = Op::Confirm { key, token, ttl, number };
                let call = state.nodes.call_checked(id, op, request.max_ttl, self.limit.span);
                forward(&self.sender, id, NodeResponse::Confirmed, call);
            }
            let outcome = self.attempt.outcome();
            match outcome {
                // An error about too few servers is worth a moment to find out which of them work.
                Some(Outcome::Unknown { .. }) if self.has_open() && clock::now() < patience => {}
                Some(outcome) => return self.ended(state, request, outcome),
                None => {}
            }
            let has_dead = self.nodes.iter().any(|node| node.dead.is_some());
            let is_short = has_dead || self.attempt.outcome().is_some();
            let patience = if is_short { patience } else { Timestamp::MAX };
            let timer = self.attempt.poll_timer().unwrap_or(Timestamp::MAX);
            tokio::select! {
                biased;
                response = self.responses.recv() => {
                    if let Some((id, response)) = response {
                        self.take(state, request, id, response);
                    }
                }
                () = state.timers.sleep_until(timer.min(patience)) => {
                    if clock::now() >= patience {
                        self.give_up_the_dead(|_| true);
                    }
                    self.attempt.handle_time(clock::now());
                }
            }
        }
    }

    /// Whether a node that was thought well has not answered.
    fn has_open(&self) -> bool {
        let is_open = |node: &NodeRequest| !node.answered && node.trouble.is_none();
        self.nodes.iter().any(|node| is_open(node) && node.dead.is_none())
    }

    fn take(
        &mut self,
        state: &State,
        request: &AcquireRequest,
        id: NodeId,
        response: NodeResponse,
    ) {
        let now = clock::now();
        let (NodeResponse::Vote(answer) | NodeResponse::Confirmed(answer)) = &response;
        let ineligible = answer.as_ref().ok().and_then(|checked| checked.ineligible.clone());
        if let (Some(node), Some(ineligible)) = (self.nodes.get_mut(id.0), ineligible) {
            node.ineligible.get_or_insert(ineligible);
        }
        let is_ineligible = self.is_ineligible(state, request, id);
        match response {
            NodeResponse::Vote(answer) => {
                let answer = answer.map(|checked| checked.reply);
                let vote = match self.read_vote(state, request, id, answer) {
                    Vote::Granted(number) if is_ineligible => self.exclude(id, number),
                    vote => vote,
                };
                if let Some(node) = self.nodes.get_mut(id.0) {
                    node.answered = true;
                    node.dead = None;
                }
                self.attempt.handle_vote(now, id, vote);
            }
            NodeResponse::Confirmed(answer) => {
                let answer = match answer.map(|checked| checked.reply) {
                    Ok(Reply::Confirmed { answer, .. }) => {
                        // That it refused another's number is the other's trouble.
                        if let Confirmation::Faulty(fault) = &answer
                            && *fault != FenceFault::Ahead
                        {
                            self.trouble(id, of_fault(state, id, *fault, request));
                        }
                        Some(answer).filter(|_| !is_ineligible)
                    }
                    Ok(_) => {
                        self.trouble(id, error(state, id, NodeErrorKind::Protocol));
                        None
                    }
                    Err(error) => {
                        self.trouble(id, error);
                        None
                    }
                };
                self.attempt.handle_confirmed(now, id, answer);
            }
        }
    }

    fn read_vote(
        &mut self,
        state: &State,
        request: &AcquireRequest,
        id: NodeId,
        answer: Result<Reply, NodeError>,
    ) -> Vote {
        let (reply, last_number) = match answer {
            Ok(Reply::Voted { reply, last_number, wall_us }) => {
                if let Some(error) = state.nodes.number_trouble(id, last_number, wall_us) {
                    self.trouble(id, error);
                }
                (*reply, last_number)
            }
            Ok(reply) => (reply, None),
            Err(error) => {
                self.trouble(id, error);
                return Vote::Unknown;
            }
        };
        match reply {
            Reply::Granted(number) => return Vote::Granted(number),
            Reply::Held(held) => return Vote::Refused { held, last_number },
            Reply::Faulty(fault) => {
                self.trouble(id, of_fault(state, id, fault, request));
            }
            _ => self.trouble(id, error(state, id, NodeErrorKind::Protocol).maybe_applied()),
        }
        Vote::Unknown
    }

    /// Whether a grant of the node is no vote. Once so it stays so in this attempt: a later answer
    /// may be about a key that was set before.
    fn is_ineligible(&mut self, state: &State, request: &AcquireRequest, id: NodeId) -> bool {
        let Some(node) = self.nodes.get_mut(id.0) else { return false };
        if node.ineligible.is_none() {
            node.ineligible = state.nodes.judge(id, request.max_ttl).err();
        }
        node.ineligible.is_some()
    }

    /// Takes the grant of a node that may have forgotten whom it granted the lock before.
    fn exclude(&mut self, id: NodeId, number: FencingToken) -> Vote {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.granted_while_ineligible = Some(number);
            node.trouble.clone_from(&node.ineligible);
        }
        Vote::Unknown
    }

    fn trouble(&mut self, id: NodeId, error: NodeError) {
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.failed(self.limit.explain(error));
        }
    }

    /// Those of the nodes that were out of reach before are not waited for any longer.
    fn give_up_the_dead(&mut self, is_one: impl Fn(NodeId) -> bool) {
        for (id, node) in (0..).map(NodeId).zip(&mut self.nodes) {
            if let Some(dead) = node.dead.take_if(|_| is_one(id)) {
                node.trouble = Some(dead);
                self.attempt.handle_vote(clock::now(), id, Vote::Unknown);
            }
        }
    }

    /// The next node where something of a failed attempt may be, or may yet arrive.
    pub(super) fn poll_undo(&mut self) -> Option<(NodeId, Residue)> {
        while let Some(id) = self.attempt.poll_undo() {
            let node = self.nodes.get(id.0)?;
            if node.granted_while_ineligible.is_some() {
                return Some((id, Residue::default()));
            }
            let trouble = node.trouble.as_ref().filter(|_| node.answered);
            let ambiguous = trouble.is_some_and(NodeError::may_be_applied);
            // A request that was never sent is not sent any more.
            if trouble.is_none() || ambiguous || self.attempt.holds(id) {
                return Some((id, Residue { ambiguous, ..Residue::default() }));
            }
        }
        None
    }

    /// Where a lease that was acquired has its key.
    pub(super) fn placement(&self) -> Vec<NodeHold> {
        let now = clock::now();
        let placement = self.nodes.iter().enumerate().map(|(index, node)| {
            if self.attempt.holds(NodeId(index)) {
                return NodeHold::granted(Residue::default(), now);
            }
            let mut hold = NodeHold::asked();
            if node.answered && node.granted_while_ineligible.is_none() {
                let trouble = node.trouble.as_ref();
                hold.is_unsure = trouble.is_some_and(NodeError::may_be_applied);
                hold.residue.ambiguous = hold.is_unsure;
            }
            hold
        });
        placement.collect()
    }

    /// Goes on receiving for a lease that was acquired, from the nodes that have not answered. What
    /// an ineligible node granted belongs to it now: the others show that nobody else has the lock.
    pub(super) fn follow(self, state: &Rc<State>, id: LeaseId) {
        let until = self.sent() + self.limit.span;
        let Self { mut responses, sender, nodes, attempt, .. } = self;
        drop(sender);
        for (index, node) in nodes.into_iter().enumerate() {
            let id_of_node = NodeId(index);
            if let Some(number) = node.granted_while_ineligible {
                state.handle_late_answer(id, id_of_node, &Ok(Reply::Granted(number)), true);
            } else if let Some(number) = attempt.number(id_of_node) {
                state.confirm_late(id, id_of_node, number);
            }
        }
        let state = Rc::clone(state);
        task::spawn(async move {
            while let Some((node, response)) = responses.recv().await {
                if let NodeResponse::Vote(answer) = response {
                    let answer = answer.map(|checked| checked.reply);
                    // This process may have been stopped meanwhile, and the others' keys ended.
                    state.handle_late_answer(id, node, &answer, clock::now() <= until);
                }
            }
        });
    }
}

fn error(state: &State, id: NodeId, kind: NodeErrorKind) -> NodeError {
    NodeError::new(state.nodes.get(id).name(), kind)
}

fn of_fault(state: &State, id: NodeId, fault: FenceFault, request: &AcquireRequest) -> NodeError {
    NodeError::of_fault(state.nodes.get(id).name(), fault, &request.key)
}
