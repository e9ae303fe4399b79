//! A lease that is held: when to renew it, and when it is lost.

use std::time::Duration;

use crate::{LossReason, Pause, Timestamp, Ttl, backoff::jittered, loss_margin};

/// How a lease is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain settings, all needed")]
pub struct LeaseSettings {
    /// The TTL that the grant asked for, and that each renewal asks for.
    pub ttl: Ttl,
    /// Renew in the background.
    pub renewed: bool,
    /// The longest the lease may be held.
    pub max_hold: Option<Duration>,
}

/// A lease that is held, until it is lost. A loss is final, except one by time alone: a holder that
/// still has its key has lost nothing.
///
/// Its driver must call [`LeaseState::handle_time`] at [`LeaseState::poll_timeout`], send a renewal
/// whenever [`LeaseState::poll_renewal`] returns true, and pass in each answer with the time before
/// its request was queued. Loss by time needs no answer from a server.
#[derive(Clone, Debug)]
pub struct LeaseState {
    settings: LeaseSettings,
    granted: Timestamp,
    /// The end of validity: from before the last successful request, less the drift.
    deadline: Timestamp,
    margin: Duration,
    renew_at: Timestamp,
    in_flight: bool,
    /// The last renewal was not answered.
    failing: bool,
    lost: Option<LossReason>,
}

impl LeaseState {
    /// A lease whose grant was asked for at `sent`.
    #[must_use]
    pub fn new(sent: Timestamp, settings: LeaseSettings) -> Self {
        let validity = settings.ttl.validity();
        Self {
            settings,
            granted: sent,
            deadline: sent + validity,
            margin: loss_margin(settings.ttl),
            renew_at: sent + validity / 3,
            in_flight: false,
            failing: false,
            lost: None,
        }
    }

    /// The end of validity. Never moves back.
    #[must_use]
    pub const fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// Why the lease is lost, once it is.
    #[must_use]
    pub const fn lost(&self) -> Option<&LossReason> {
        self.lost.as_ref()
    }

    /// The TTL that renewals ask for.
    #[must_use]
    pub const fn ttl(&self) -> Ttl {
        self.settings.ttl
    }

    /// When [`LeaseState::handle_time`] or [`LeaseState::poll_renewal`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Timestamp {
        if self.lost.is_some() {
            return Timestamp::MAX;
        }
        let renewal =
            if self.settings.renewed && !self.in_flight { self.renew_at } else { Timestamp::MAX };
        renewal.min(self.lost_at()).min(self.hold_until())
    }

    /// Marks the lease lost when its time is over.
    pub fn handle_time(&mut self, now: Timestamp) {
        if now >= self.lost_at() {
            self.lose(LossReason::Expired);
        } else if now >= self.hold_until() {
            self.lose(LossReason::MaxHold);
        }
    }

    /// Whether to send a renewal now; it then counts as in flight until an answer is handed in.
    ///
    /// `ahead` lets renewals that are due a little later go along with one that is due now.
    #[must_use]
    pub fn poll_renewal(&mut self, now: Timestamp, ahead: Duration) -> bool {
        self.handle_time(now);
        let idle = self.settings.renewed && !self.in_flight && self.lost.is_none();
        let due = idle && now + ahead >= self.renew_at;
        self.in_flight |= due;
        due
    }

    /// Takes the success of a renewal that was queued at `sent`. The deadline is raised, never
    /// lowered.
    pub fn handle_renewed(&mut self, now: Timestamp, sent: Timestamp) {
        self.in_flight = false;
        self.handle_extended(now, sent, self.settings.ttl);
    }

    /// Takes the success of an extension by the caller to `ttl`, queued at `sent`. The deadline is
    /// raised, never lowered; a renewal in flight stays in flight.
    pub fn handle_extended(&mut self, now: Timestamp, sent: Timestamp, ttl: Ttl) {
        // The answer may be here after the loss; what was signalled stays so.
        self.handle_time(now);
        if self.lost.is_some() {
            return;
        }
        self.failing = false;
        self.deadline = self.deadline.max(sent + ttl.validity());
        self.renew_at = self.renewal_after(sent);
    }

    /// Takes a renewal that was not answered: tried again after a twelfth of the validity, or half
    /// of what is left if that is less.
    pub fn handle_unknown(&mut self, now: Timestamp, random: u64) {
        self.in_flight = false;
        let left = self.lost_at().since(now);
        let pause = (self.settings.ttl.validity() / 12).min(left / 2);
        self.renew_at = now + jittered(pause, random);
        self.handle_time(now);
        self.failing = true;
    }

    /// Takes a pause of this process, so that a loss which it caused is reported as such.
    pub fn handle_pause(&mut self, pause: Pause) {
        if self.lost.is_none() && pause.to >= self.lost_at() && pause.from <= self.excuse() {
            self.lose(LossReason::Paused { pause: pause.length() });
        }
    }

    /// A pause that began by then and outlasts the lease is why it was not renewed: no renewal had
    /// failed before, and there was time for one in between.
    #[must_use]
    pub fn excuse(&self) -> Timestamp {
        if self.settings.renewed && !self.failing {
            self.lost_at().before(self.settings.ttl.validity() / 3)
        } else {
            Timestamp::default()
        }
    }

    /// When to renew after a success at `sent`: a third of the validity later, and no later than
    /// two thirds of it before the end, which a shorter extension does not move.
    fn renewal_after(&self, sent: Timestamp) -> Timestamp {
        let third = self.settings.ttl.validity() / 3;
        (sent + third).min(self.deadline.before(2 * third))
    }

    /// The loss at `now` that even a [proof](LeaseState::handle_proved) cannot undo: any but an
    /// expiry.
    #[must_use]
    pub fn final_loss(&self, now: Timestamp) -> Option<LossReason> {
        match &self.lost {
            None | Some(LossReason::Expired | LossReason::Paused { .. }) => {
                (now >= self.hold_until()).then_some(LossReason::MaxHold)
            }
            Some(reason) => Some(reason.clone()),
        }
    }

    /// Takes the proof that its key was there from the grant on: the nodes raised its TTL when they
    /// were asked at `sent`, and nothing creates the key again. If its time ran out, it is held
    /// again, as if it had been renewed then.
    pub fn handle_proved(&mut self, now: Timestamp, sent: Timestamp) {
        self.handle_time(now);
        let is_soon_enough = now < (sent + self.settings.ttl.validity()).before(self.margin);
        if is_soon_enough && self.final_loss(now).is_none() {
            self.lost = None;
            self.deadline = self.deadline.max(sent + self.settings.ttl.validity());
        }
        self.handle_renewed(now, sent);
    }

    /// Records that the lease is over. The first reason stays.
    pub fn lose(&mut self, reason: LossReason) {
        self.lost.get_or_insert(reason);
    }

    fn lost_at(&self) -> Timestamp {
        // The longest TTLs end after the last timestamp there is: those never run out.
        if self.deadline == Timestamp::MAX {
            return Timestamp::MAX;
        }
        self.deadline.before(self.margin)
    }

    fn hold_until(&self) -> Timestamp {
        self.settings.max_hold.map_or(Timestamp::MAX, |longest| self.granted + longest)
    }
}

#[cfg(test)]
mod tests;
