//! Acquiring: attempts, until one succeeds or the wait is over.

use std::{rc::Rc, time::Duration};

use tenure_core::{Timestamp, Wait, Waiting};

use super::{
    command::{AcquireReply, AcquireRequest, Acquired, How},
    hearing::Hearing,
    quest::{Quest, Tried},
    state::{Acquiring, State, command_limit, vote_limit},
};
use crate::{
    clock,
    error::{AcquireError, NoQuorum, NodeError, NodeErrorKind},
    event,
    node::News,
    random,
};

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
        let patience = began + command_limit(request.settings.ttl.get());
        let mut waiting = Waiting::new(began, *wait);
        let mut quest = Quest::begin(self, request, None)?;
        let mut hearing = None;
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
                Tried::NotALock(found) => return Ok(Acquired::NotALock(found)),
                Tried::Again => continue,
                Tried::Held(held) => {
                    event::contended(key, class, &held.holder);
                    let next = if quest.is_split() {
                        waiting.handle_split(now, held.ttl_left, random)
                    } else {
                        waiting.handle_held(now, held.ttl_left, random)
                    };
                    // Refused without a place: nothing under this token is anywhere, or it is
                    // undone as this one ends.
                    quest = Quest::begin(self, request, quest.seen)?;
                    match next {
                        Some(next) => next,
                        None => return Ok(Acquired::Held { held, waited: now.since(began) }),
                    }
                }
                Tried::Queued { held, ticket, position } => {
                    event::contended(key, class, &held.holder);
                    parked = self.nodes.first().tells_waiters();
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
                Tried::Untold(none, held) => {
                    none.failed.iter().for_each(|error| event::untold(key, class, error));
                    let next = match held {
                        Some(held) => waiting.handle_held(now, held.ttl_left, random),
                        None if will_tell(&none)
                            || is_busy_store(&none)
                            || now < patience && is_slow(&none) =>
                        {
                            waiting.handle_not_yet(now, random)
                        }
                        None => waiting.handle_unknown(now, random),
                    };
                    if !quest.is_queued() {
                        quest = Quest::begin(self, request, quest.seen)?;
                    }
                    match next.filter(|_| self.may_change(&none)) {
                        Some(next) => next,
                        None => return Err(AcquireError::NoQuorum(none)),
                    }
                }
            };
            if self.nodes.sole().is_some() {
                self.pause(&quest, &mut waiting, next, parked).await;
            } else {
                let hearing = hearing.get_or_insert_with(|| Hearing::begin(self, key));
                hearing.pause(&mut waiting, next).await;
            }
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

    /// Whether the same attempt may succeed without anybody changing a setting.
    fn may_change(&self, none: &NoQuorum) -> bool {
        let quorum = self.nodes.quorum();
        let for_good = none.failed.iter().filter(|error| !error.is_retryable()).count();
        quorum.nodes() - for_good.min(quorum.nodes()) >= quorum.needed()
    }

    /// The time limit of the next attempt: that of an op, but not past the end of the wait.
    fn limit(&self, request: &AcquireRequest, waiting: &Waiting) -> Duration {
        let ttl = request.settings.ttl.get();
        let limit = match (self.nodes.sole(), &request.how) {
            (None, How::Try | How::Steal { .. }) => {
                request.node_limit.unwrap_or_else(|| vote_limit(ttl))
            }
            _ => command_limit(ttl),
        };
        match request.wait {
            Wait::Within(budget) if !budget.is_zero() => {
                let left = waiting.left(clock::now()).unwrap_or(limit);
                limit.min(left.max(LAST_TRY))
            }
            _ => limit,
        }
    }
}

/// Whether a majority will be there when the nodes that may not vote yet do.
fn will_tell(none: &NoQuorum) -> bool {
    let doubted = none.failed.iter().filter(|error| error.is_doubt()).count();
    doubted > 0 && none.granted + doubted >= none.needed
}

/// Whether the only node is a store that others keep busy. It is on this very host, so a wait
/// without an end outlasts any load.
fn is_busy_store(none: &NoQuorum) -> bool {
    let is_busy = |error: &NodeError| {
        error.is_store() && matches!(error.kind(), NodeErrorKind::Busy | NodeErrorKind::TimedOut)
    };
    matches!(none.failed.as_slice(), [error] if is_busy(error))
}

/// Whether nodes were given up that may only be slow: an attempt at several has less time than one
/// at the only node, which must not make a wait without an end end sooner.
fn is_slow(none: &NoQuorum) -> bool {
    none.failed.iter().any(|error| error.kind() == NodeErrorKind::TimedOut)
}

/// What the last try of a wait may take: a healthy server on a busy machine answers in it, and a
/// silent one does not keep the caller much longer than it asked.
const LAST_TRY: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, D, F: Future>(_: impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// Ten thousand may wait at a time; what only several nodes need is in boxes.
    #[test]
    fn an_acquisition_at_one_node_is_small() {
        let size = size(State::acquire);
        assert!(size <= 1_100, "{size} bytes");
    }
}
