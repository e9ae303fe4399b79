//! One attempt at several nodes, all of them at once.

use std::{rc::Rc, time::Duration};

use tenure_core::{
    Attempt, Confirmation, FencingToken, Held, NodeId, Op, Outcome, Reply, Timestamp, Token, Vote,
};
use tokio::sync::mpsc;

use super::{
    command::{AcquireRequest, How},
    lease::LeaseId,
    seats::Seat,
    state::{SHORTEST_LIMIT, State},
};
use crate::{
    clock,
    error::{NoQuorum, NodeError, NodeErrorKind},
    node::{Call, Standing},
    task,
};

/// One attempt: the answers of the nodes go into core's [`Attempt`], and what it asks goes out.
///
/// Each node has its own time limit from the beginning, so none waits for another. Nothing waits
/// for a node that is out of reach, nor long for one that was when it was last tried and is being
/// tried again: it is asked all the same, and a grant that comes late becomes part of the lease.
pub(super) struct Ballot {
    attempt: Attempt,
    limit: Duration,
    nodes: Vec<Asked>,
    says: mpsc::UnboundedSender<(NodeId, Says)>,
    said: mpsc::UnboundedReceiver<(NodeId, Says)>,
}

/// What is known of the request to one node.
#[derive(Debug, Default)]
struct Asked {
    answered: bool,
    /// Why it did not tell.
    trouble: Option<NodeError>,
    /// It was known to be out of reach when it was asked.
    dead: Option<NodeError>,
}

enum Says {
    Vote(Result<Reply, NodeError>),
    Confirmed(Result<Reply, NodeError>),
}

/// How a ballot ended that did not get the lock.
pub(super) enum Failed {
    /// So many nodes refused that nobody else's answer matters.
    Held(Held),
    /// Too many could not tell; and who holds the lock on the others, where that is what was
    /// missing for a majority.
    Untold(NoQuorum, Option<Held>),
}

impl Ballot {
    /// Asks every node. The requests are queued when this returns.
    pub(super) fn begin(
        state: &State,
        request: &AcquireRequest,
        token: &Token,
        proposal: FencingToken,
        limit: Duration,
    ) -> Self {
        let sent = clock::now();
        let AcquireRequest { settings, min_validity, .. } = request;
        let least = min_validity.unwrap_or_default();
        let mut attempt = Attempt::new(sent, state.nodes.quorum(), settings.ttl, least);
        let (says, said) = mpsc::unbounded_channel();
        let mut nodes = Vec::new();
        while let Some(id) = attempt.poll_ask() {
            let node = state.nodes.get(id);
            let (key, token, ttl) = (request.key.clone(), token.clone(), settings.ttl);
            let op = match request.how {
                How::Steal => Op::Steal { key, token, ttl },
                How::Try | How::Resume(_) => {
                    Op::Acquire { key, token, ttl, proposal: Some(proposal), place: None }
                }
            };
            nodes.push(Asked { dead: node.trouble(), ..Asked::default() });
            hear(&says, id, Says::Vote, node.call(op, limit));
        }
        let mut ballot = Self { attempt, limit, nodes, says, said };
        ballot.give_up_the_dead(|id| state.nodes.get(id).is_out_of_reach());
        ballot
    }

    /// When it began: validity counts from here.
    pub(super) fn sent(&self) -> Timestamp {
        self.attempt.sent()
    }

    /// Whether the votes are split.
    pub(super) fn is_split(&self) -> bool {
        self.attempt.is_split()
    }

    /// The largest number that any node told.
    pub(super) fn seen(&self) -> Option<FencingToken> {
        self.attempt.seen()
    }

    /// Waits until no further answer can change the outcome.
    pub(super) async fn settle(
        &mut self,
        state: &State,
        request: &AcquireRequest,
        token: &Token,
    ) -> Result<FencingToken, Failed> {
        let patience = self.sent() + SHORTEST_LIMIT;
        loop {
            while let Some((id, number)) = self.attempt.poll_confirm() {
                let (key, token, ttl) = (request.key.clone(), token.clone(), request.settings.ttl);
                let op = Op::Confirm { key, token, ttl, number };
                let call = state.nodes.get(id).call(op, self.limit);
                hear(&self.says, id, Says::Confirmed, call);
            }
            if let Some(outcome) = self.attempt.outcome() {
                return self.ended(state, outcome);
            }
            let has_dead = self.nodes.iter().any(|node| node.dead.is_some());
            let patience = if has_dead { patience } else { Timestamp::MAX };
            let timer = self.attempt.poll_timer().unwrap_or(Timestamp::MAX);
            tokio::select! {
                biased;
                said = self.said.recv() => {
                    if let Some((id, says)) = said {
                        self.take(state, id, says);
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

    fn take(&mut self, state: &State, id: NodeId, says: Says) {
        let now = clock::now();
        match says {
            Says::Vote(answer) => {
                let vote = self.read_vote(state, id, answer);
                if let Some(node) = self.nodes.get_mut(id.0) {
                    node.answered = true;
                    node.dead = None;
                }
                self.attempt.handle_vote(now, id, vote);
            }
            Says::Confirmed(answer) => {
                let answer = match answer {
                    Ok(Reply::Confirmed { answer, wall_us }) => {
                        state.nodes.set_clock(id, wall_us);
                        if let Confirmation::Faulty(fault) = &answer {
                            let kind = NodeErrorKind::FenceUnusable;
                            self.trouble(id, error(state, id, kind).with_source(*fault));
                        }
                        Some(answer)
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

    fn read_vote(&mut self, state: &State, id: NodeId, answer: Result<Reply, NodeError>) -> Vote {
        let (reply, last_number) = match answer {
            Ok(Reply::Voted { reply, last_number, wall_us }) => {
                state.nodes.set_clock(id, wall_us);
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
                let kind = NodeErrorKind::FenceUnusable;
                self.trouble(id, error(state, id, kind).with_source(fault));
            }
            _ => self.trouble(id, error(state, id, NodeErrorKind::Protocol).maybe_applied()),
        }
        Vote::Unknown
    }

    fn trouble(&mut self, id: NodeId, error: NodeError) {
        // That a request may still arrive is not forgotten for what comes after it.
        if let Some(node) = self.nodes.get_mut(id.0)
            && !node.trouble.as_ref().is_some_and(NodeError::may_be_applied)
        {
            node.trouble = Some(error);
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

    fn ended(&self, state: &State, outcome: Outcome) -> Result<FencingToken, Failed> {
        let needed = state.nodes.quorum().needed();
        match outcome {
            Outcome::Acquired(number) => Ok(number),
            Outcome::Held(held) => Err(Failed::Held(held)),
            Outcome::Unknown { granted, needed } => Err(self.untold(state, granted, needed)),
            Outcome::TooLate => {
                let nodes = state.nodes.iter();
                let granted = nodes.filter(|(id, _)| self.attempt.holds(*id)).count();
                Err(self.untold(state, granted, needed))
            }
        }
    }

    fn untold(&self, state: &State, granted: usize, needed: usize) -> Failed {
        let is_over = clock::now() >= self.sent() + self.limit;
        let mut failed = Vec::new();
        let mut refused = Vec::new();
        for ((id, _), standing) in state.nodes.iter().zip(self.attempt.standings()) {
            let trouble = self.nodes.get(id.0).and_then(|node| node.trouble.clone());
            match standing.heard() {
                Some(Vote::Refused { held, .. }) => refused.push(held.clone()),
                Some(Vote::Granted(_)) => failed.extend(trouble),
                // One that could not change the outcome any more was not waited for.
                Some(Vote::Unknown) | None if trouble.is_none() && !is_over => {}
                Some(Vote::Unknown) | None => {
                    let late = || error(state, id, NodeErrorKind::TimedOut).maybe_applied();
                    failed.push(trouble.unwrap_or_else(late));
                }
            }
        }
        let is_contended = granted < needed && granted + refused.len() >= needed;
        let held = refused.into_iter().next().filter(|_| is_contended);
        Failed::Untold(NoQuorum { granted, needed, failed }, held)
    }

    /// The next node where something of a failed attempt may be, or may yet arrive.
    pub(super) fn poll_undo(&mut self) -> Option<(NodeId, Standing)> {
        while let Some(id) = self.attempt.poll_undo() {
            let node = self.nodes.get(id.0)?;
            let trouble = node.trouble.as_ref().filter(|_| node.answered);
            let ambiguous = trouble.is_some_and(NodeError::may_be_applied);
            // A request that was never sent is not sent any more.
            if trouble.is_none() || ambiguous || self.attempt.holds(id) {
                return Some((id, Standing { ambiguous, ..Standing::default() }));
            }
        }
        None
    }

    /// Where a lease that was acquired has its key.
    pub(super) fn seats(&self) -> Vec<Seat> {
        let now = clock::now();
        let seats = self.nodes.iter().enumerate().map(|(index, node)| {
            if self.attempt.holds(NodeId(index)) {
                return Seat::granted(Standing::default(), now);
            }
            let mut seat = Seat::asked();
            if node.answered {
                let trouble = node.trouble.as_ref();
                seat.is_unsure = trouble.is_some_and(NodeError::may_be_applied);
                seat.standing.ambiguous = seat.is_unsure;
            }
            seat
        });
        seats.collect()
    }

    /// Goes on listening for a lease that was acquired, to the nodes that have not answered.
    pub(super) fn follow(self, state: &Rc<State>, id: LeaseId) {
        let Self { mut said, says, .. } = self;
        drop(says);
        let state = Rc::clone(state);
        task::spawn(async move {
            while let Some((node, says)) = said.recv().await {
                if let Says::Vote(answer) = says {
                    state.heard_late(id, node, &answer, true);
                }
            }
        });
    }
}

/// Has an answer told when it is there. Its request is not taken back when nobody listens.
fn hear(
    says: &mpsc::UnboundedSender<(NodeId, Says)>,
    id: NodeId,
    wrap: fn(Result<Reply, NodeError>) -> Says,
    call: Call,
) {
    let says = says.clone();
    // The attempt may be over.
    task::spawn(async move { _ = says.send((id, wrap(call.await))) });
}

fn error(state: &State, id: NodeId, kind: NodeErrorKind) -> NodeError {
    NodeError::new(state.nodes.get(id).name(), kind)
}
