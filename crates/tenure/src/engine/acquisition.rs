//! One acquisition under one token.

use std::{pin::Pin, rc::Rc, sync::Arc, time::Duration};

use tenure_core::{
    Attempt, FencingToken, Held, Holder, NodeId, Op, Outcome, Quorum, Reply, Ticket, Timestamp,
    Token, Ttl, TtlLeft, Vote, Wait, Waiting,
};

use super::{
    command::{AcquireRequest, How},
    lease::{Holding, LeaseCell},
    limits::{self, Limit},
    placement::{NodeHold, Placement},
    resume::Resumed,
    state::State,
    vote::{Failed, QuorumRound},
};
use crate::{
    clock,
    error::{AcquireError, NoQuorum, NodeError, NodeErrorKind},
    node::{PendingReply, QueueWaiter, RetryContext},
    random,
};

/// How one try ended.
pub(super) enum AttemptResult {
    Acquired(FencingToken, Timestamp),
    Held(Held),
    Queued {
        held: Held,
        ticket: Ticket,
        position: u64,
    },
    /// Ask again at once.
    Again,
    Free,
    /// The value at the key is no lock: nothing was changed, and waiting is useless.
    NotALock(Holder),
    /// The outcome is unknown; and the holder on nodes that refused, if their votes would have made
    /// a majority: waiting for that holder may help.
    Indeterminate(NoQuorum, Option<Held>),
}

impl AttemptResult {
    /// The holder of a key without a TTL.
    pub(super) fn endless(&self) -> Option<&Held> {
        let (Self::Held(held) | Self::Queued { held, .. }) = self else { return None };
        (held.ttl_left == TtlLeft::Never).then_some(held)
    }
}

/// One acquisition under one token: its tries, until it holds the lock or gives up.
///
/// Dropping it at any moment sends a release behind whatever was asked, so nothing of it is left on
/// a node: no key, and no place in the queue.
pub(super) struct Acquisition<'a> {
    state: &'a Rc<State>,
    pub(super) request: &'a AcquireRequest,
    pub(super) waiter: Rc<QueueWaiter>,
    /// Something under this token may be on a node.
    open: bool,
    sent: Timestamp,
    /// The largest number that a node reported, where several vote.
    pub(super) seen: Option<FencingToken>,
    /// The attempt at several nodes; in a box, since most wait at one.
    round: Option<Box<QuorumRound>>,
    /// Where several nodes have the key, once they do.
    holds: Vec<NodeHold>,
}

impl<'a> Acquisition<'a> {
    pub(super) fn begin(
        state: &'a Rc<State>,
        request: &'a AcquireRequest,
        seen: Option<FencingToken>,
    ) -> Result<Self, AcquireError> {
        let token = match &request.how {
            How::Resume(token) => token.clone(),
            How::Try | How::Steal { .. } => {
                let stopped = |_| AcquireError::EngineStopped { key: request.key.clone() };
                let random = random::token().map_err(stopped)?;
                Token::new(random, &request.label)
            }
        };
        let waiter = QueueWaiter::new(
            token,
            grant_ttl(request.settings.ttl, state.nodes.first().round_trip()),
        );
        let (sent, round, holds) = (Timestamp::default(), None, Vec::new());
        Ok(Self { state, request, waiter, open: false, sent, seen, round, holds })
    }

    pub(super) fn is_queued(&self) -> bool {
        self.waiter.is_queued()
    }

    /// Whether the votes of several nodes were split: it may be that nobody holds the lock.
    fn is_split(&self) -> bool {
        self.round.as_deref().is_some_and(QuorumRound::is_split)
    }

    /// One attempt.
    pub(super) async fn attempt(&mut self, waiting: &mut Waiting, limit: Limit) -> AttemptResult {
        match (self.state.nodes.sole(), &self.request.how) {
            (Some(_), _) => self.attempt_on_one(waiting, limit).await,
            // It is large and rare, and a waiter is to be small.
            (None, How::Resume(token)) => Box::pin(self.resume(token, limit)).await,
            (None, How::Try | How::Steal { .. }) => self.vote(waiting, limit).await,
        }
    }

    /// One round of votes of several nodes.
    async fn vote(&mut self, waiting: &mut Waiting, limit: Limit) -> AttemptResult {
        let Self { state, request, .. } = *self;
        let token = self.waiter.token().clone();
        let proposal = tenure_core::proposal(self.seen, state.nodes.wall_us());
        self.open = true;
        let round = QuorumRound::begin(state, request, &token, proposal, limit);
        let round = self.round.insert(Box::new(round));
        self.sent = round.sent();
        let result = round.settle(state, request, &token).await;
        self.seen = self.seen.max(round.seen());
        match result {
            Ok(number) => {
                self.holds = round.placement();
                AttemptResult::Acquired(number, self.sent)
            }
            Err(Failed::Held(held)) => {
                waiting.handle_round(clock::now().since(self.sent));
                AttemptResult::Held(held)
            }
            Err(Failed::NotALock(found)) => AttemptResult::NotALock(found),
            Err(Failed::Indeterminate(none, held)) => AttemptResult::Indeterminate(none, held),
        }
    }

    /// Takes a lease up again that several nodes have.
    async fn resume(&mut self, token: &Token, limit: Limit) -> AttemptResult {
        self.sent = clock::now();
        let AcquireRequest { key, settings, max_ttl, .. } = self.request;
        let ttls = (settings.ttl, *max_ttl);
        match self.state.resumed(key, token, ttls, limit).await {
            Ok(Resumed::Yes(number, placement)) => {
                self.holds = placement;
                AttemptResult::Acquired(number, self.sent)
            }
            Ok(Resumed::Held(held)) => AttemptResult::Held(held),
            Ok(Resumed::Free) => AttemptResult::Free,
            Err(none) => AttemptResult::Indeterminate(none, None),
        }
    }

    /// One vote of the only node.
    async fn attempt_on_one(&mut self, waiting: &mut Waiting, limit: Limit) -> AttemptResult {
        let AcquireRequest { settings, min_validity, .. } = self.request;
        let least = min_validity.unwrap_or_default();
        self.sent = clock::now();
        // What was asked for by the token of a lease that is held is never undone.
        self.open = !matches!(self.request.how, How::Resume(_));
        let mut attempt = Attempt::new(self.sent, Quorum::ONE, settings.ttl, least);
        let asked = attempt.poll_ask();
        let (vote, trouble) = match self.ask(waiting, limit.span).await {
            Ok(Reply::Granted(number)) => (Vote::Granted(number), None),
            Ok(Reply::Held(held)) if self.request.how.refuses(&held.holder) => {
                self.open = self.is_queued();
                return AttemptResult::NotALock(held.holder);
            }
            Ok(Reply::Held(held)) => (Vote::Refused { held, last_number: None }, None),
            Ok(Reply::Queued { held, ticket, position }) => {
                return AttemptResult::Queued { held, ticket, position };
            }
            Ok(Reply::More) => return AttemptResult::Again,
            Ok(Reply::Free) => {
                self.open = false;
                return AttemptResult::Free;
            }
            Ok(Reply::Faulty(fault)) => {
                let name = self.state.nodes.first().name();
                (Vote::Unknown, Some(NodeError::of_fault(name, fault, &self.request.key)))
            }
            Ok(_) => (Vote::Unknown, Some(self.error(NodeErrorKind::Protocol).maybe_applied())),
            Err(error) => (Vote::Unknown, Some(limit.explain(error))),
        };
        if let Some(node) = asked {
            attempt.handle_vote(clock::now(), node, vote);
        }
        // The grant came, but too late to be of use: it is undone like an unknown one.
        let late = || limit.explain(self.error(NodeErrorKind::TimedOut).maybe_applied());
        let mut unsure = false;
        let result = match attempt.outcome() {
            Some(Outcome::Acquired(number)) => AttemptResult::Acquired(number, self.sent),
            Some(Outcome::Held(held)) => AttemptResult::Held(held),
            Some(Outcome::TooLate | Outcome::Unknown { .. }) | None => {
                unsure = trouble.as_ref().is_none_or(NodeError::may_be_applied);
                AttemptResult::Indeterminate(indeterminate(trouble.unwrap_or_else(late)), None)
            }
        };
        if unsure {
            self.waiter.set_ambiguous();
        }
        self.open &= unsure || self.is_queued();
        result
    }

    /// Whether the lease that was granted could be kept, if that is uncertain; the error when it
    /// could not. One that is resumed was kept until now. In a box, since it is rare.
    pub(super) fn too_far(
        &self,
    ) -> Option<Pin<Box<impl Future<Output = Option<NodeError>> + use<'a>>>> {
        let AcquireRequest { settings, how, .. } = self.request;
        let (state, ttl) = (self.state, settings.ttl);
        let is_kept = settings.renewed && !matches!(how, How::Resume(_));
        if !is_kept || limits::can_be_renewed(ttl, limits::round_trip(&state.nodes)) {
            return None;
        }
        Some(Box::pin(async move {
            let mut least = Duration::MAX;
            // One slow answer is no distance.
            for _ in 0..MEASUREMENTS {
                least = least.min(state.measure(ttl.get()).await);
                if limits::can_be_renewed(ttl, least) {
                    return None;
                }
            }
            Some(limits::too_far(&state.nodes, ttl, least))
        }))
    }

    /// Releases what was granted.
    pub(super) fn decline(mut self) {
        self.open = true;
    }

    /// When to try again where another holds the lock, or each of several has a part of the nodes.
    pub(super) fn next_try(
        &self,
        waiting: &mut Waiting,
        now: Timestamp,
        held: &Held,
        random: u64,
    ) -> Option<Timestamp> {
        if self.is_split() {
            waiting.handle_split(now, held.ttl_left, random)
        } else {
            waiting.handle_held(now, held.ttl_left, random)
        }
    }

    fn ask(&self, waiting: &mut Waiting, limit: Duration) -> PendingReply {
        let AcquireRequest { how, settings, wait, .. } = self.request;
        let (key, token, ttl) =
            (self.request.key.clone(), self.waiter.token().clone(), settings.ttl);
        let node = self.state.nodes.first();
        match how {
            How::Resume(_) => node.call(Op::Resume { key, token, ttl }, limit),
            How::Steal { any } => node.call(Op::Steal { key, token, ttl, any: *any }, limit),
            How::Try => {
                let op = Op::Acquire { key, token, ttl, proposal: None, place: None };
                if *wait == Wait::No {
                    return node.call(op, limit);
                }
                let (ticket, suspect) = (waiting.ticket(), waiting.take_suspect());
                node.call_waiting(op, &self.waiter, RetryContext { ticket, suspect }, limit)
            }
        }
    }

    /// Enters a grant into the table of leases.
    pub(super) fn hold(
        mut self,
        number: FencingToken,
        sent: Timestamp,
    ) -> Result<Holding, AcquireError> {
        self.open = false;
        let AcquireRequest { key, settings, .. } = self.request;
        let deadline = sent + settings.ttl.validity();
        let status = Arc::clone(&self.state.status);
        let token = self.waiter.token().clone();
        let cell = Arc::new(LeaseCell::new(key.clone(), token, number, deadline, status));
        let id = self.state.fresh_lease();
        let placement = self.placement();
        let cell_of_lease = Arc::clone(&cell);
        self.state.leases.insert(id, sent, self.request, cell_of_lease, placement);
        self.state.watch_later(id);
        if let Some(round) = self.round.take() {
            round.follow(self.state, id);
        }
        let inbox = self.state.inbox.upgrade();
        let inbox = inbox.ok_or_else(|| AcquireError::EngineStopped { key: key.clone() })?;
        Ok(Holding::new(id, cell, inbox))
    }

    /// Where it has its key, now that it is held.
    fn placement(&mut self) -> Placement {
        let now = clock::now();
        let holds = match self.state.nodes.sole() {
            Some(_) => {
                let hold = NodeHold::granted(self.waiter.residue_as_holder(), now);
                let is_taken_up = matches!(self.request.how, How::Resume(_));
                vec![if is_taken_up { hold.taken_up() } else { hold }]
            }
            None => std::mem::take(&mut self.holds),
        };
        Placement::new(holds, now)
    }

    fn error(&self, kind: NodeErrorKind) -> NodeError {
        NodeError::new(self.state.nodes.first().name(), kind)
    }
}

impl Drop for Acquisition<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let until = self.sent + self.request.settings.ttl.get();
        let of = || (self.request.key.clone(), self.waiter.token().clone());
        match &mut self.round {
            None => {
                let (key, token) = of();
                self.state.undo(NodeId(0), key, token, self.waiter.residue(), until);
            }
            Some(round) => {
                while let Some((node, residue)) = round.poll_undo() {
                    let (key, token) = of();
                    self.state.undo(node, key, token, residue, until);
                }
            }
        }
    }
}

/// The short TTL of a hand-over, until the waiter confirms: never more than it wants.
fn grant_ttl(ttl: Ttl, round_trip: Duration) -> Ttl {
    let grant_ttl = MIN_GRANT_TTL.max(round_trip.saturating_mul(10));
    Ttl::new(grant_ttl).map_or(ttl, |grant_ttl| grant_ttl.min(ttl))
}

/// A server that hiccups, or a busy host, is as slow as that once or twice.
const MEASUREMENTS: u32 = 3;

/// Ten round trips to another continent; a dead waiter that looks alive holds up the queue so long.
const MIN_GRANT_TTL: Duration = Duration::from_secs(1);

fn indeterminate(error: NodeError) -> NoQuorum {
    let needed = Quorum::ONE.needed();
    NoQuorum::new(0, needed, vec![error])
}
