//! A client: what its engine does with each answer, message, timer and loss.

use tenure_core::{Held, Timestamp, TtlLeft, Wait, Waiting};

use crate::{
    Violation,
    attempt::{Belief, ClientAttempt, Force, Keep, Phase, WaiterNotification},
    check::believes,
    config::Flaw,
    message::{Ask, Content, Delivery, PendingRequest},
    model::Model,
    names::{line, rank_of, ticket},
    rank::Rank,
    state::{Left, Line, QueueState, Who},
    time::{GRANT_TTL, HERE, LEASE, RENEWED, ticks_until, validity},
    violation::Kind,
};

impl Model {
    /// Sends over the client's connection, which there is.
    pub(crate) fn send(state: &mut QueueState, who: Who, ask: Ask) {
        let client = state.client(who.client);
        let request = PendingRequest { who, epoch: client.epoch, age: 0, ask };
        client.requests.push_back(request);
    }

    /// Asks for the lock, or for news of one's place.
    pub(crate) fn acquire(&self, state: &mut QueueState, who: Who) {
        let epoch = state.client(who.client).epoch;
        let attempt = state.attempt_mut(who);
        let last = attempt.asked.checked_ilog2().and_then(|last| u8::try_from(last).ok());
        let previous = last.filter(|last| *last != epoch);
        let no_ticket = self.config.flaw == Some(Flaw::NoTicket);
        let ticket = attempt.ticket.filter(|_| !no_ticket);
        attempt.asked |= 1 << epoch;
        attempt.asking = true;
        attempt.due = None;
        attempt.notification = None;
        let suspect = attempt.suspect.take();
        Self::send(state, who, Ask::Acquire { ticket, previous, suspect });
    }

    pub(crate) fn renew(state: &mut QueueState, who: Who) {
        state.attempt_mut(who).renewing = true;
        Self::send(state, who, Ask::Renew);
    }

    /// Takes or releases the lock by force.
    pub(crate) fn force(state: &mut QueueState, who: Who, force: Force) {
        let attempt = state.attempt_mut(who);
        attempt.phase = Phase::Forcing(force);
        attempt.asking = true;
        Self::send(state, who, Ask::Force(force));
    }

    /// Asks for something with the token of a lease that is held.
    pub(crate) fn keep(state: &mut QueueState, who: Who, keep: Keep) {
        state.attempt_mut(who).asking = true;
        Self::send(state, who, Ask::Keep(keep));
    }

    /// Gives the lease back, or the wait up. Sent now where there is a connection.
    pub(crate) fn give_up(&self, state: &mut QueueState, who: Who) {
        let attempt = state.attempt_mut(who);
        let waited = matches!(attempt.phase, Phase::Waiting | Phase::Forcing(_));
        attempt.phase = Phase::Releasing { waited };
        (attempt.ticket, attempt.suspect, attempt.due) = (None, None, None);
        (attempt.notification, attempt.belief) = (None, None);
        if state.client(who.client).connected {
            self.release(state, who);
        }
    }

    pub(crate) fn release(&self, state: &mut QueueState, who: Who) {
        let attempt = state.attempt(who);
        let waited = attempt.phase == Phase::Releasing { waited: true };
        let leave_tombstone = attempt.ambiguous && self.config.flaw != Some(Flaw::NoTombstone);
        // A grant took the holder's entry out of the queue; only a late command could bring it
        // back.
        let asked = if waited || attempt.ambiguous { attempt.asked } else { 0 };
        Self::send(state, who, Ask::Release { asked, leave_tombstone, waited });
    }

    /// Takes what comes over the connection.
    pub(crate) fn receive(
        &self,
        state: &mut QueueState,
        message: &Delivery,
    ) -> Result<(), Violation> {
        let Delivery { who, says } = *message;
        let attempt = state.attempt_mut(who);
        let waits = attempt.phase == Phase::Waiting;
        let forces = matches!(attempt.phase, Phase::Forcing(_));
        if matches!(
            says,
            Content::Granted { .. }
                | Content::Queued { .. }
                | Content::More
                | Content::Cancelled
                | Content::Kept
        ) {
            attempt.asking = false;
        }
        match says {
            Content::Granted { number, age } if forces => {
                let left = validity(LEASE, age);
                if left > 0 {
                    return Self::hold(state, who, left, Some(number));
                }
                attempt.ambiguous = true;
                self.give_up(state, who);
            }
            // The lock is given up, whosever it was: nothing is left to do.
            Content::Released { .. } if forces => attempt.end(),
            Content::Cancelled if forces => {
                return Err(Violation::new(
                    Kind::Row,
                    "a forced command is refused as released".into(),
                ));
            }
            Content::Granted { number, age } if waits => {
                let late = self.config.flaw == Some(Flaw::BelieveFromReply);
                let left = validity(LEASE, if late { 0 } else { age });
                if left > 0 {
                    return Self::hold(state, who, left, Some(number));
                }
                // Too late to be of use: as if it had not been notified.
                attempt.ambiguous = true;
                attempt.due = Some(0);
            }
            Content::Queued { left, ticket, position } if waits => {
                self.queued(state, who, left, ticket, position);
            }
            Content::More if waits && self.config.flaw != Some(Flaw::MoreIsForgotten) => {
                self.acquire(state, who);
            }
            Content::Cancelled if waits => {
                return Err(Violation::new(Kind::Row, "a waiter is refused as released".into()));
            }
            Content::Granted { .. }
            | Content::Queued { .. }
            | Content::More
            | Content::Cancelled
            | Content::Kept => {}
            Content::Renewed { age } => {
                attempt.renewing = false;
                if let Some(belief) = &mut attempt.belief {
                    belief.left = belief.left.max(validity(RENEWED, age));
                }
            }
            Content::Lost => (attempt.renewing, attempt.belief) = (false, None),
            Content::Released { more } => {
                attempt.release_known = true;
                if more && self.config.flaw != Some(Flaw::MoreIsForgotten) {
                    self.release(state, who);
                } else {
                    attempt.end();
                }
            }
            Content::Grant if waits && self.config.flaw == Some(Flaw::BelieveMessage) => {
                return Self::hold(state, who, validity(GRANT_TTL, 0), None);
            }
            Content::Grant if waits => self.notified(state, who, WaiterNotification::Acquire),
            Content::SuccessorWatch { granted } if waits => {
                self.notified(state, who, WaiterNotification::SuccessorWatch { granted });
            }
            // Too late: its release follows, or is under way.
            Content::Grant | Content::SuccessorWatch { .. } => {}
        }
        Ok(())
    }

    fn hold(
        state: &mut QueueState,
        who: Who,
        left: Left,
        number: Option<Rank>,
    ) -> Result<(), Violation> {
        let attempt = state.attempt_mut(who);
        attempt.phase = Phase::Holding;
        attempt.belief = Some(Belief { left, number });
        (attempt.ticket, attempt.suspect, attempt.due) = (None, None, None);
        attempt.notification = None;
        believes(state, who, number)
    }

    /// Takes its place, and the messages that came before it.
    fn queued(&self, state: &mut QueueState, who: Who, left: Left, place: Rank, position: u8) {
        let (holder, ttl_left) = (self.names.holder(who), TtlLeft::Ends(millis(left)));
        let held = Held { holder, ttl_left };
        let attempt = state.attempt_mut(who);
        let mut waiting = self.waiting(attempt);
        _ = waiting.handle_queued(HERE, &held, ticket(place), position.into(), RANDOM);
        // The head's first and early looks ask for nothing: these are the times to acquire.
        let due = Waiting::next_poll(Timestamp::MAX, HERE, &held, position.into(), true, RANDOM);
        attempt.ticket = waiting.ticket().map(rank_of);
        attempt.suspect = waiting.take_suspect().map(|suspect| line(&suspect));
        let blind = self.config.flaw == Some(Flaw::OnlyHeadPolls) && position > 0;
        attempt.due = due.map(ticks_until).filter(|_| !blind);
        if let Some(notification) = attempt.notification.take() {
            self.notified(state, who, notification);
        }
    }

    /// Takes a message for a waiter.
    fn notified(&self, state: &mut QueueState, who: Who, notification: WaiterNotification) {
        let attempt = state.attempt_mut(who);
        match notification {
            _ if attempt.asking => {
                // That it has the lock outdoes everything that came before or after.
                attempt.notification = attempt
                    .notification
                    .filter(|old| *old == WaiterNotification::Acquire)
                    .or(Some(notification));
            }
            WaiterNotification::Acquire => self.acquire(state, who),
            WaiterNotification::SuccessorWatch { granted } => {
                let mut waiting = self.waiting(attempt);
                let channel = self.names.channel(granted).clone();
                let due = waiting.handle_successor_watch(HERE, GRANT_TTL.into(), channel);
                attempt.suspect = waiting.take_suspect().map(|suspect| line(&suspect));
                attempt.due = due.map(ticks_until);
            }
        }
    }

    /// The real thing, with what this one knows.
    fn waiting(&self, attempt: &ClientAttempt) -> Waiting {
        let mut waiting = Waiting::new(HERE, Wait::Forever);
        if let Some(suspect) = attempt.suspect {
            let channel = self.names.channel(suspect).clone();
            _ = waiting.handle_successor_watch(HERE, GRANT_TTL.into(), channel);
        }
        waiting
    }

    /// A connection has ended, and its client knows: what was under way to the client is lost.
    pub(crate) fn cut(&self, state: &mut QueueState, client: u8) {
        let stale = self.config.flaw == Some(Flaw::StaleStanding);
        let forgets = self.config.flaw == Some(Flaw::RepairIsForgotten);
        let client = state.client(client);
        client.connected = false;
        client.inbox.clear();
        for attempt in &mut client.attempts {
            let releasing = matches!(attempt.phase, Phase::Releasing { .. });
            let forgotten = forgets && attempt.phase == Phase::Holding;
            attempt.ambiguous |= attempt.asking && !(stale && releasing) && !forgotten;
            (attempt.asking, attempt.renewing, attempt.notification) = (false, false, None);
            if matches!(attempt.phase, Phase::Forcing(_)) {
                // It asks once: whether it was done is unknown, and it is undone.
                attempt.phase = Phase::Releasing { waited: true };
            }
        }
    }

    /// A new connection: waiters poll, holders renew, and pending releases are repeated.
    pub(crate) fn connect(&self, state: &mut QueueState, client: u8) {
        let one = state.client(client);
        one.connected = true;
        one.epoch += 1;
        one.seen |= 1 << one.epoch;
        for who in state.everyone().filter(|who| who.client == client) {
            let attempt = state.attempt(who);
            match attempt.phase {
                Phase::Waiting if self.config.flaw == Some(Flaw::NoPollAfterReconnect) => {}
                Phase::Waiting => self.acquire(state, who),
                Phase::Holding if attempt.belief.is_some() => Self::renew(state, who),
                Phase::Releasing { .. } => self.release(state, who),
                Phase::Idle | Phase::Forcing(_) | Phase::Holding | Phase::Done => {}
            }
        }
    }

    /// The line over which a client speaks now.
    pub(crate) fn current(state: &QueueState, client: u8) -> Option<Line> {
        let one = &state.clients[usize::from(client)];
        one.connected.then_some(Line { client, epoch: one.epoch })
    }
}

fn millis(ms: Left) -> std::time::Duration {
    std::time::Duration::from_millis(ms.into())
}

/// In the middle of what jitter does; no timer of a queue of ours has any.
const RANDOM: u64 = 500;
