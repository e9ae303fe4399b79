//! Acquiring: attempts, until one succeeds or the wait is over.

use std::{rc::Rc, time::Duration};

use tenure_core::{Op, Timestamp, Waiting};

use super::{
    acquisition::{Acquisition, AttemptResult},
    command::{AcquireReply, AcquireRequest, Acquired},
    limits::{Limit, MAX_LIMIT},
    nodes::{Answers, each_until},
    release_subscription::ReleaseSubscription,
    state::{Acquiring, State},
};
use crate::{
    clock,
    error::{AcquireError, NoQuorum, NodeError, NodeErrorKind},
    event,
    node::WaiterEvent,
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
        let patience = began + MAX_LIMIT;
        let mut waiting = Waiting::new(began, *wait);
        let mut acquisition = Acquisition::begin(self, request, None)?;
        let (mut subscription, mut was_slow, mut is_endless) = (None, false, false);
        loop {
            if std::mem::take(&mut was_slow) {
                // Then the connections are there, and the distance is known: an attempt at a far
                // server with a short TTL has no time to connect.
                let left = waiting.left(clock::now()).unwrap_or(MAX_LIMIT);
                Box::pin(self.measure(left.min(MAX_LIMIT))).await;
            }
            let limit = Limit::of(&self.nodes, request, &waiting);
            let result = acquisition.attempt(&mut waiting, limit).await;
            let now = clock::now();
            let (random, mut parked) = (random::jitter(), false);
            if !is_endless && let Some(held) = result.endless() {
                is_endless = true;
                event::held_without_end(key, class, &held.holder);
            }
            let next = match result {
                AttemptResult::Acquired(number, sent) => {
                    if let Some(measured) = acquisition.too_far()
                        && let Some(error) = measured.await
                    {
                        return Err(self.declined(acquisition, error));
                    }
                    event::acquired(key, class, number, now.since(began));
                    return Ok(Acquired::Yes(acquisition.hold(number, sent)?));
                }
                AttemptResult::Free => return Ok(Acquired::Free),
                AttemptResult::NotALock(found) => return Ok(Acquired::NotALock(found)),
                AttemptResult::Again => continue,
                AttemptResult::Held(held) => {
                    event::contended(key, class, &held.holder);
                    let next = acquisition.next_try(&mut waiting, now, &held, random);
                    // No place: no node keeps anything of this token, or it is undone.
                    acquisition = Acquisition::begin(self, request, acquisition.seen)?;
                    match next {
                        Some(next) => next,
                        None => return Ok(Acquired::Held { held, waited: now.since(began) }),
                    }
                }
                AttemptResult::Queued { held, ticket, position } => {
                    event::contended(key, class, &held.holder);
                    parked = self.nodes.first().notifies_waiters();
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
                AttemptResult::Indeterminate(none, held) => {
                    none.failed.iter().for_each(|error| event::indeterminate(key, class, error));
                    was_slow = held.is_none() && is_slow(&none);
                    let may_be_connecting = now < patience && is_slow(&none);
                    let next = match held {
                        Some(held) => waiting.handle_held(now, held.ttl_left, random),
                        None if may_be_connecting || may_agree(&none) || is_busy_store(&none) => {
                            waiting.handle_not_yet(now, random)
                        }
                        None => waiting.handle_unknown(now, random),
                    };
                    if !acquisition.is_queued() {
                        acquisition = Acquisition::begin(self, request, acquisition.seen)?;
                    }
                    match next.filter(|_| self.may_change(&none)) {
                        Some(next) => next,
                        None => return Err(AcquireError::NoQuorum(none)),
                    }
                }
            };
            if self.nodes.sole().is_some() {
                self.pause(&acquisition, &mut waiting, next, parked).await;
            } else {
                let subscription =
                    subscription.get_or_insert_with(|| ReleaseSubscription::begin(self, key));
                subscription.pause(&mut waiting, next).await;
            }
        }
    }

    /// Gives a lease back that could not be kept, for this reason.
    fn declined(&self, acquisition: Acquisition<'_>, error: NodeError) -> AcquireError {
        acquisition.decline();
        let needed = self.nodes.quorum().needed();
        AcquireError::NoQuorum(NoQuorum::new(needed, needed, vec![error]))
    }

    /// Sleeps until it is time to ask again, or until the waiter is notified.
    ///
    /// The poller polls for a waiter that is parked in a queue, from `next` on. The waiter makes
    /// the last try of its wait itself, at that very moment.
    async fn pause(
        &self,
        acquisition: &Acquisition<'_>,
        waiting: &mut Waiting,
        next: Timestamp,
        parked: bool,
    ) {
        let deadline = waiting.deadline();
        let mut registration = (parked && next < deadline).then(|| {
            self.poller.register(&acquisition.request.key, &acquisition.waiter, deadline, next)
        });
        let mut until = if registration.is_some() { deadline } else { next };
        loop {
            let event = tokio::select! {
                () = self.timers.sleep_until(until) => return,
                event = acquisition.waiter.event() => event,
            };
            match event {
                WaiterEvent::Acquire => return,
                WaiterEvent::SuccessorWatch { grant_ttl_ms, granted } => {
                    // It polls by itself, and it names the suspect.
                    drop(registration.take());
                    let now = clock::now();
                    until =
                        waiting.handle_successor_watch(now, grant_ttl_ms, granted).unwrap_or(now);
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

    /// How long a majority takes to answer something that changes nothing, at most so long.
    pub(super) async fn measure(&self, longest: Duration) -> Duration {
        let began = clock::now();
        let calls = self.nodes.iter().map(|(id, _)| self.nodes.call(id, Op::Clock, longest));
        let needed = self.nodes.quorum().needed();
        let are_enough =
            |answers: Answers| answers.iter().filter(|answer| answer.is_ok()).count() >= needed;
        drop(each_until(calls.collect(), are_enough).await);
        clock::now().since(began)
    }
}

/// Whether the nodes that granted and the ineligible ones are a majority together.
fn may_agree(none: &NoQuorum) -> bool {
    let ineligible = none.failed.iter().filter(|error| error.is_ineligible()).count();
    ineligible > 0 && none.granted + ineligible >= none.needed
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
