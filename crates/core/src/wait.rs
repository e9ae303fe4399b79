//! Attempts until a deadline.

use std::time::Duration;

use crate::{Backoff, Timestamp, TtlLeft};

/// How long an acquisition waits for another's lease to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "for ever, for a while, or not at all")]
pub enum Wait {
    /// Until the lock is free.
    #[default]
    Forever,
    /// At most this long. A lock that is free at the last moment is still taken; none is taken
    /// later. Zero is one try.
    Within(Duration),
    /// One try.
    No,
}

/// When to try again, and when to give up: the seam for every way of waiting.
///
/// This one polls, with growing and jittered delays, and never sleeps past the end of the lease it
/// was told or past its own deadline.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The last moment of a try; `None` for ever.
    until: Option<Timestamp>,
    backoff: Backoff,
    told: bool,
}

impl Waiting {
    /// Begins to wait.
    #[must_use]
    pub fn new(now: Timestamp, wait: Wait) -> Self {
        let until = match wait {
            Wait::Forever => None,
            Wait::Within(budget) => Some(now + budget),
            Wait::No => Some(now),
        };
        Self { until, backoff: Backoff::new(POLL_LEAST, POLL_MOST), told: false }
    }

    /// Another holds the lock: when to try again, or `None` to give up.
    #[must_use]
    pub fn handle_held(
        &mut self,
        now: Timestamp,
        ttl_left: TtlLeft,
        random: u64,
    ) -> Option<Timestamp> {
        self.told = true;
        let poll = now + self.backoff.next_delay(random);
        let end = ttl_left.get().map_or(Timestamp::MAX, |left| now + left + AFTER_END);
        self.clip(now, poll.min(end))
    }

    /// No node could tell: when to try again, or `None` to give up.
    ///
    /// A wait without an end outlasts an outage only when it has been told before that the lock is
    /// held. A server that was never reached is more likely a wrong address than an outage.
    #[must_use]
    pub fn handle_unknown(&mut self, now: Timestamp, random: u64) -> Option<Timestamp> {
        if self.until.is_none() && !self.told {
            return None;
        }
        let poll = now + self.backoff.next_delay(random);
        self.clip(now, poll)
    }

    /// What is left of the wait: the time limit of the next try. `None` for ever.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        self.until.map(|until| until.since(now))
    }

    /// The last try is at the deadline itself, and after that there is none.
    fn clip(&self, now: Timestamp, next: Timestamp) -> Option<Timestamp> {
        match self.until {
            Some(until) if now >= until => None,
            Some(until) => Some(next.min(until)),
            None => Some(next),
        }
    }
}

/// The first poll comes soon, since most holds are short.
const POLL_LEAST: Duration = Duration::from_millis(10);

/// About four polls a second: what the peers do, who know no better way.
const POLL_MOST: Duration = Duration::from_millis(250);

/// A server deletes a key only when its clock is past the end, and it counts whole milliseconds.
const AFTER_END: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const NEVER: TtlLeft = TtlLeft::Never;

    #[test]
    fn no_and_zero_are_one_try() {
        for wait in [Wait::No, Wait::Within(Duration::ZERO)] {
            let mut waiting = Waiting::new(at(5), wait);
            assert_eq!(waiting.handle_held(at(5), NEVER, 0), None);
            assert_eq!(waiting.handle_unknown(at(5), 0), None);
        }
    }

    #[test]
    fn the_last_try_is_at_the_deadline_and_never_later() {
        let mut waiting = Waiting::new(at(0), Wait::Within(ms(1_000)));
        let mut now = at(0);
        let mut tries = 0;
        while let Some(next) = waiting.handle_held(now, NEVER, 500) {
            assert!(next > now && next <= at(1_000));
            now = next;
            tries += 1;
        }
        assert_eq!(now, at(1_000));
        assert!((5..=10).contains(&tries), "{tries}");
    }

    #[test]
    fn a_lease_that_ends_sooner_is_tried_at_its_end() {
        let mut waiting = Waiting::new(at(0), Wait::Forever);
        for _ in 0..10 {
            _ = waiting.handle_held(at(0), NEVER, 500);
        }
        assert_eq!(waiting.handle_held(at(0), NEVER, 500), Some(at(250)));
        assert_eq!(waiting.handle_held(at(0), TtlLeft::Ends(ms(30)), 500), Some(at(32)));
    }

    #[test]
    fn an_endless_wait_outlasts_only_an_outage_it_was_in() {
        let mut waiting = Waiting::new(at(0), Wait::Forever);
        assert_eq!(waiting.handle_unknown(at(0), 0), None);
        assert!(waiting.handle_held(at(0), NEVER, 0).is_some());
        assert!(waiting.handle_unknown(at(1), 0).is_some());
        let mut waiting = Waiting::new(at(0), Wait::Within(ms(100)));
        assert!(waiting.handle_unknown(at(0), 0).is_some());
        assert_eq!(waiting.handle_unknown(at(100), 0), None);
    }
}
