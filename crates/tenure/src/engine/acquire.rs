//! Acquiring: attempts, until one succeeds or the wait is over.

use std::{rc::Rc, sync::Arc, time::Duration};

use tenure_core::{
    Attempt, FencingToken, Held, LockKey, Op, Outcome, Quorum, Reply, Token, Ttl, Vote, Wait,
    Waiting,
};

use super::{
    command::{AcquireReply, AcquireRequest, Acquired, Grant, How},
    lease::{Holding, LeaseCell},
    state::{Acquiring, State, command_limit},
};
use crate::{
    clock,
    error::{AcquireError, NoQuorum, NodeError, NodeErrorKind},
    event, random,
};

/// How one attempt ended.
enum Tried {
    Acquired(Grant),
    Held(Held),
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
        loop {
            let limit = self.limit(request, &waiting);
            let next = match self.attempt(request, limit).await? {
                Tried::Acquired(grant) => {
                    event::acquired(key, class, clock::now().since(began));
                    return Ok(Acquired::Yes(self.hold(request, grant)?));
                }
                Tried::Free => return Ok(Acquired::Free),
                Tried::Held(held) => {
                    event::contended(key, class, &held.holder);
                    let now = clock::now();
                    match waiting.handle_held(now, held.ttl_left, random::jitter()) {
                        Some(next) => next,
                        None => return Ok(Acquired::Held { held, waited: now.since(began) }),
                    }
                }
                Tried::Untold(error) => {
                    event::untold(key, class, &error);
                    let next = waiting.handle_unknown(clock::now(), random::jitter());
                    match next.filter(|_| error.is_retryable()) {
                        Some(next) => next,
                        None => return Err(untold(error)),
                    }
                }
            };
            tokio::select! {
                () = self.timers.sleep_until(next) => {}
                () = self.node.freed() => {}
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

    async fn attempt(
        self: &Rc<Self>,
        request: &AcquireRequest,
        limit: Duration,
    ) -> Result<Tried, AcquireError> {
        let key = request.key.clone();
        let ttl = request.settings.ttl;
        let (op, token, undoes) = match &request.how {
            How::Resume(token) => {
                let token = token.clone();
                (Op::Resume { key: key.clone(), token: token.clone(), ttl }, token, false)
            }
            how => {
                let random = random::token().map_err(|_| AcquireError::EngineStopped)?;
                let token = Token::new(random, &request.label);
                let op = match how {
                    How::Steal => Op::Steal { key: key.clone(), token: token.clone(), ttl },
                    _ => Op::Acquire { key: key.clone(), token: token.clone(), ttl },
                };
                (op, token, true)
            }
        };
        let min_validity = request.min_validity.unwrap_or_default();
        let attempt = Attempt::new(clock::now(), Quorum::ONE, ttl, min_validity);
        let mut round = Round { state: self, attempt, key, token, ttl, undoes };
        Ok(round.run(op, limit).await)
    }

    /// Enters a grant into the table of leases.
    fn hold(
        self: &Rc<Self>,
        request: &AcquireRequest,
        grant: Grant,
    ) -> Result<Holding, AcquireError> {
        let Grant { token, number, sent } = grant;
        let deadline = sent + request.settings.ttl.validity();
        let life = Arc::clone(&self.life);
        let cell = Arc::new(LeaseCell::new(request.key.clone(), token, number, deadline, life));
        let id = self.fresh_lease();
        self.leases.insert(id, sent, request.settings, Arc::clone(&cell), request.class.clone());
        let inbox = self.inbox.upgrade().ok_or(AcquireError::EngineStopped)?;
        Ok(Holding::new(id, cell, inbox))
    }
}

/// One attempt under way. Dropping it at any moment sends a release behind whatever was asked.
struct Round<'a> {
    state: &'a Rc<State>,
    attempt: Attempt,
    key: LockKey,
    token: Token,
    ttl: Ttl,
    /// The token is this attempt's own, so it may be undone; that of a resumed lease may not.
    undoes: bool,
}

impl Round<'_> {
    async fn run(&mut self, op: Op, limit: Duration) -> Tried {
        let mut trouble = None;
        while let Some(node) = self.attempt.poll_ask() {
            let vote = match self.state.node.call(op.clone(), limit).await {
                Ok(Reply::Granted(number)) => Vote::Granted(number),
                Ok(Reply::Held(held)) => Vote::Refused(held),
                Ok(Reply::Free) => {
                    self.undoes = false;
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
            self.attempt.handle_vote(clock::now(), node, vote);
        }
        // The grant came, but too late to be of use: it is undone like one that was not told.
        let late = || self.error(NodeErrorKind::TimedOut).maybe_applied();
        let tried = match self.attempt.outcome() {
            Some(Outcome::Acquired(number)) => Tried::Acquired(self.grant(number)),
            Some(Outcome::Held(held)) => Tried::Held(held),
            Some(Outcome::TooLate | Outcome::Unknown) | None => {
                Tried::Untold(trouble.unwrap_or_else(late))
            }
        };
        self.undoes &= matches!(&tried, Tried::Untold(error) if error.may_be_applied());
        tried
    }

    fn grant(&self, number: FencingToken) -> Grant {
        Grant { token: self.token.clone(), number, sent: self.attempt.sent() }
    }

    fn error(&self, kind: NodeErrorKind) -> NodeError {
        NodeError::new(self.state.node.name(), kind)
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        while self.undoes && self.attempt.poll_undo().is_some() {
            let until = self.attempt.sent() + self.ttl.get();
            self.state.undo(self.key.clone(), self.token.clone(), until);
        }
    }
}

fn untold(error: NodeError) -> AcquireError {
    let needed = Quorum::ONE.needed();
    AcquireError::NoQuorum(NoQuorum { granted: 0, needed, failed: vec![error] })
}

/// What the last try of a wait may take: a healthy server on a busy machine answers in it, and a
/// silent one does not keep the caller much longer than it asked.
const LAST_TRY: Duration = Duration::from_millis(250);
