//! Acquiring: attempts, until one succeeds or the wait is over.

use std::{rc::Rc, sync::Arc, time::Duration};

use tenure_core::{
    Attempt, FencingToken, Held, Op, Outcome, Quorum, Reply, Ticket, Timestamp, Token, Ttl, Vote,
    Wait, Waiting,
};

use super::{
    command::{AcquireReply, AcquireRequest, Acquired, How},
    lease::{Holding, LeaseCell},
    state::{Acquiring, State, command_limit},
};
use crate::{
    clock,
    error::{AcquireError, NoQuorum, NodeError, NodeErrorKind},
    event,
    node::{Brought, Call, News, Waiter},
    random,
};

/// How one try ended.
enum Tried {
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
    Untold(NodeError),
}

impl State {
    /// Acquires for a caller, and undoes it all when the caller stops waiting.
    pub(super) async fn acquire(
        self: Rc<Self>,
        request: Box<AcquireRequest>,
        mut reply: AcquireReply,
        _acquiring: Acquiring,
    ) {
        let result = tokio::select! {
            biased;
            result = self.until_settled(&request) => result,
            () = reply.closed() => return,
            () = self.closing() => return,
        };
        // A caller that is gone gives the lease back: a holding releases when it is dropped.
        drop(reply.send(result));
    }

    async fn until_settled(
        self: &Rc<Self>,
        request: &AcquireRequest,
    ) -> Result<Acquired, AcquireError> {
        let AcquireRequest { key, class, wait, .. } = request;
        let began = clock::now();
        let mut waiting = Waiting::new(began, *wait);
        let mut quest = Quest::begin(self, request)?;
        loop {
            let limit = self.limit(request, &waiting);
            let tried = quest.attempt(&mut waiting, limit).await;
            let now = clock::now();
            let random = random::jitter();
            let mut parked = false;
            let next = match tried {
                Tried::Acquired(number, sent) => {
                    event::acquired(key, class, now.since(began));
                    return Ok(Acquired::Yes(quest.hold(number, sent)?));
                }
                Tried::Free => return Ok(Acquired::Free),
                Tried::Again => continue,
                Tried::Held(held) => {
                    event::contended(key, class, &held.holder);
                    let next = waiting.handle_held(now, held.ttl_left, random);
                    // Refused without a place: nothing under this token is anywhere.
                    quest = Quest::begin(self, request)?;
                    match next {
                        Some(next) => next,
                        None => return Ok(Acquired::Held { held, waited: now.since(began) }),
                    }
                }
                Tried::Queued { held, ticket, position } => {
                    event::contended(key, class, &held.holder);
                    parked = self.node.tells_waiters();
                    let next = if parked {
                        waiting.handle_queued(now, &held, ticket, position, random)
                    } else {
                        waiting.handle_held(now, held.ttl_left, random)
                    };
                    match next {
                        Some(next) => next,
                        None => return Ok(Acquired::Held { held, waited: now.since(began) }),
                    }
                }
                Tried::Untold(error) => {
                    event::untold(key, class, &error);
                    let next = waiting.handle_unknown(now, random);
                    if !quest.is_queued() {
                        quest = Quest::begin(self, request)?;
                    }
                    match next.filter(|_| error.is_retryable()) {
                        Some(next) => next,
                        None => return Err(untold(error)),
                    }
                }
            };
            self.pause(&quest, &mut waiting, next, parked).await;
        }
    }

    /// Sleeps until it is time to ask again, or until the waiter is told to.
    ///
    /// For one that is parked in a queue the lookout looks, from `next` on; the last try of its
    /// wait it makes itself, at that very moment.
    async fn pause(&self, quest: &Quest<'_>, waiting: &mut Waiting, next: Timestamp, parked: bool) {
        let deadline = waiting.deadline();
        let mut post = (parked && next < deadline)
            .then(|| self.lookout.post(&quest.request.key, &quest.waiter, deadline, next));
        let mut until = if post.is_some() { deadline } else { next };
        loop {
            let news = tokio::select! {
                () = self.timers.sleep_until(until) => return,
                news = quest.waiter.news() => news,
            };
            match news {
                News::Look => return,
                News::StandIn { claim_ms, granted } => {
                    // It looks by itself, and it names the suspect.
                    drop(post.take());
                    let now = clock::now();
                    until = waiting.handle_stand_in(now, claim_ms, granted).unwrap_or(now);
                }
            }
        }
    }

    /// The time limit of the next attempt: that of an op, but not past the end of the wait.
    fn limit(&self, request: &AcquireRequest, waiting: &Waiting) -> Duration {
        let limit = command_limit(request.settings.ttl.get());
        match request.wait {
            Wait::Within(budget) if !budget.is_zero() => {
                let left = waiting.left(clock::now()).unwrap_or(limit);
                limit.min(left.max(LAST_TRY))
            }
            _ => limit,
        }
    }
}

/// One acquisition under one token: its tries, until it holds the lock or gives up.
///
/// Dropping it at any moment sends a release behind whatever was asked, so nothing of it is left on
/// a node: no key, and no place in the queue.
struct Quest<'a> {
    state: &'a Rc<State>,
    request: &'a AcquireRequest,
    waiter: Rc<Waiter>,
    /// Something under this token may be on a node.
    open: bool,
    sent: Timestamp,
}

impl<'a> Quest<'a> {
    fn begin(state: &'a Rc<State>, request: &'a AcquireRequest) -> Result<Self, AcquireError> {
        let token = match &request.how {
            How::Resume(token) => token.clone(),
            How::Try | How::Steal => {
                let random = random::token().map_err(|_| AcquireError::EngineStopped)?;
                Token::new(random, &request.label)
            }
        };
        let waiter = Waiter::new(token, claim(request.settings.ttl, state.node.round_trip()));
        Ok(Self { state, request, waiter, open: false, sent: Timestamp::default() })
    }

    fn is_queued(&self) -> bool {
        self.waiter.is_queued()
    }

    /// One round of votes.
    async fn attempt(&mut self, waiting: &mut Waiting, limit: Duration) -> Tried {
        let AcquireRequest { settings, min_validity, .. } = self.request;
        let least = min_validity.unwrap_or_default();
        self.sent = clock::now();
        // What was asked for by the token of a lease that is held is never undone.
        self.open = !matches!(self.request.how, How::Resume(_));
        let mut attempt = Attempt::new(self.sent, Quorum::ONE, settings.ttl, least);
        let mut trouble = None;
        while let Some(node) = attempt.poll_ask() {
            let vote = match self.ask(waiting, limit).await {
                Ok(Reply::Granted(number)) => Vote::Granted(number),
                Ok(Reply::Held(held)) => Vote::Refused { held, last_number: None },
                Ok(Reply::Queued { held, ticket, position }) => {
                    return Tried::Queued { held, ticket, position };
                }
                Ok(Reply::More) => return Tried::Again,
                Ok(Reply::Free) => {
                    self.open = false;
                    return Tried::Free;
                }
                Ok(Reply::Faulty(fault)) => {
                    trouble = Some(self.error(NodeErrorKind::FenceUnusable).with_source(fault));
                    Vote::Unknown
                }
                Ok(_) => {
                    trouble = Some(self.error(NodeErrorKind::Protocol).maybe_applied());
                    Vote::Unknown
                }
                Err(error) => {
                    trouble = Some(error);
                    Vote::Unknown
                }
            };
            attempt.handle_vote(clock::now(), node, vote);
        }
        // The grant came, but too late to be of use: it is undone like one that was not told.
        let late = || self.error(NodeErrorKind::TimedOut).maybe_applied();
        let tried = match attempt.outcome() {
            Some(Outcome::Acquired(number)) => Tried::Acquired(number, self.sent),
            Some(Outcome::Held(held)) => Tried::Held(held),
            Some(Outcome::TooLate | Outcome::Unknown { .. }) | None => {
                Tried::Untold(trouble.unwrap_or_else(late))
            }
        };
        let unsure = matches!(&tried, Tried::Untold(error) if error.may_be_applied());
        if unsure {
            self.waiter.set_ambiguous();
        }
        self.open &= unsure || self.is_queued();
        tried
    }

    fn ask(&self, waiting: &mut Waiting, limit: Duration) -> Call {
        let AcquireRequest { how, settings, wait, .. } = self.request;
        let (key, token, ttl) =
            (self.request.key.clone(), self.waiter.token().clone(), settings.ttl);
        let node = &self.state.node;
        match how {
            How::Resume(_) => node.call(Op::Resume { key, token, ttl }, limit),
            How::Steal => node.call(Op::Steal { key, token, ttl }, limit),
            How::Try => {
                let op = Op::Acquire { key, token, ttl, proposal: None, place: None };
                if *wait == Wait::No {
                    return node.call(op, limit);
                }
                let (ticket, suspect) = (waiting.ticket(), waiting.take_suspect());
                node.call_waiting(op, &self.waiter, Brought { ticket, suspect }, limit)
            }
        }
    }

    /// Enters a grant into the table of leases.
    fn hold(mut self, number: FencingToken, sent: Timestamp) -> Result<Holding, AcquireError> {
        self.open = false;
        let AcquireRequest { key, settings, .. } = self.request;
        let deadline = sent + settings.ttl.validity();
        let life = Arc::clone(&self.state.life);
        let token = self.waiter.token().clone();
        let cell = Arc::new(LeaseCell::new(key.clone(), token, number, deadline, life));
        let id = self.state.fresh_lease();
        let standing = self.waiter.standing_as_holder();
        let cell_of_lease = Arc::clone(&cell);
        self.state.leases.insert(id, sent, self.request, cell_of_lease, standing);
        self.state.young.add(id, settings.ttl);
        let inbox = self.state.inbox.upgrade().ok_or(AcquireError::EngineStopped)?;
        Ok(Holding::new(id, cell, inbox))
    }

    fn error(&self, kind: NodeErrorKind) -> NodeError {
        NodeError::new(self.state.node.name(), kind)
    }
}

impl Drop for Quest<'_> {
    fn drop(&mut self) {
        if self.open {
            let until = self.sent + self.request.settings.ttl.get();
            let (key, token) = (self.request.key.clone(), self.waiter.token().clone());
            self.state.undo(key, token, self.waiter.standing(), until);
        }
    }
}

/// The short TTL of a hand-over, until the waiter confirms: never more than it wants.
fn claim(ttl: Ttl, round_trip: Duration) -> Ttl {
    let claim = LEAST_CLAIM.max(round_trip.saturating_mul(10));
    Ttl::new(claim).map_or(ttl, |claim| claim.min(ttl))
}

/// Ten round trips to another continent; a dead waiter that looks alive holds up the queue so long.
const LEAST_CLAIM: Duration = Duration::from_secs(1);

fn untold(error: NodeError) -> AcquireError {
    let needed = Quorum::ONE.needed();
    AcquireError::NoQuorum(NoQuorum { granted: 0, needed, failed: vec![error] })
}

/// What the last try of a wait may take: a healthy server on a busy machine answers in it, and a
/// silent one does not keep the caller much longer than it asked.
const LAST_TRY: Duration = Duration::from_millis(250);
