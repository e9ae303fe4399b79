//! Attempts until a deadline.

use std::time::Duration;

use crate::{
    Backoff, Channel, Held, Ticket, Timestamp, TtlLeft, backoff::jittered,
    jitter_window::JitterWindow,
};

/// How long an acquisition waits for another's lease to end.
///
/// Waiters of tenure queue in arrival order, and are notified of their turn.
///
/// **Several nodes have no queue**: each would have an order of its own. Waiters are notified of
/// each release and tries again a random moment later; so nobody waits for long, and nobody comes
/// before another for having waited longer. Without notifications, waiters poll, about four times a
/// second at most.
///
/// **Clients of other libraries do not queue.** They poll, and while waiters of tenure are in the
/// queue a release hands the lock to the next of them: a poller finds it held for as long as there
/// is a queue. `Lock::yield_to_pollers` gives pollers a chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "without a limit, for a while, or not at all")]
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

/// When to try again, and when to give up: the client's side of waiting, for one waiter.
///
/// A waiter in the queue is notified of its turn, so its timer is only for what is never notified:
/// a holder that died, a message that was lost. Every waiter has one, since the head may be dead;
/// they are staggered by position, so that not all look at once. Where there is no queue (a node
/// that permits no channel, a quorum) it polls, with growing and jittered delays. In either case it
/// never sleeps past its own deadline, and the last try is at the deadline itself.
///
/// At several nodes a [notification](Waiting::handle_notification) ends a pause early; and since
/// all waiters get it at the same moment, each pauses for a random time first.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The last moment of a try; `None` without a limit.
    until: Option<Timestamp>,
    backoff: Backoff,
    was_refused: bool,
    ticket: Option<Ticket>,
    suspect: Option<Channel>,
    jitter: JitterWindow,
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
        let backoff = Backoff::new(MIN_POLL_PAUSE, MAX_POLL_PAUSE);
        let jitter = JitterWindow::new();
        Self { until, backoff, was_refused: false, ticket: None, suspect: None, jitter }
    }

    /// The place to bring along to the next try, if one is known.
    #[must_use]
    pub const fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// The channel to name as suspect in the next try, and only in that one.
    #[must_use]
    pub fn take_suspect(&mut self) -> Option<Channel> {
        self.suspect.take()
    }

    /// Another holds the lock, and there is no queue: when to try again, or `None` to give up.
    #[must_use]
    pub fn handle_held(
        &mut self,
        now: Timestamp,
        ttl_left: TtlLeft,
        random: u64,
    ) -> Option<Timestamp> {
        self.was_refused = true;
        self.jitter.handle_held();
        let poll = now + self.backoff.next_delay(random);
        self.before_end(now, poll, ttl_left)
    }

    /// Another holds the lock, and this waiter has a place: when to poll unless notified before,
    /// or `None` to give up.
    #[must_use]
    pub fn handle_queued(
        &mut self,
        now: Timestamp,
        held: &Held,
        ticket: Ticket,
        position: u64,
        random: u64,
    ) -> Option<Timestamp> {
        self.was_refused = true;
        self.ticket = Some(ticket);
        self.backoff.reset();
        if position == 0 && !held.holder.is_foreign() {
            // Most holds are over before it is worth while to have the key watched.
            let left = held.ttl_left.get().unwrap_or(MAX_POLL_INTERVAL);
            return self.clip(now, now + (left + AFTER_END).min(HEAD_FIRST));
        }
        Self::next_poll(self.deadline(), now, held, position, true, random)
    }

    /// When a waiter with this deadline polls again, if nothing has changed but the time left. The
    /// head polls often where its node does not watch the key: no message says that a lock was
    /// deleted by hand.
    #[must_use]
    pub fn next_poll(
        deadline: Timestamp,
        now: Timestamp,
        held: &Held,
        position: u64,
        watched: bool,
        random: u64,
    ) -> Option<Timestamp> {
        if position == 0 && held.holder.is_foreign() {
            // Its release notifies nobody: the head alone polls, for all waiters behind it.
            return clip(deadline, now, now + jittered(FOREIGN_POLL, random));
        }
        let left =
            held.ttl_left.get().map_or(MAX_POLL_INTERVAL, |left| left.min(MAX_POLL_INTERVAL));
        if position == 0 && !watched {
            return clip(deadline, now, now + (left + AFTER_END).min(HEAD_POLL));
        }
        let behind = u32::try_from(position).unwrap_or(u32::MAX).min(MAX_STAGGERED);
        clip(deadline, now, now + left + AFTER_END + STAGGER * behind)
    }

    /// A round of votes of several nodes took so long.
    pub fn handle_round(&mut self, took: Duration) {
        self.jitter.handle_round(took);
    }

    /// Several have a part of the nodes each, and none is known to have a majority: when to try
    /// again, or `None` to give up. The jitter window doubles.
    #[must_use]
    pub fn handle_split(
        &mut self,
        now: Timestamp,
        ttl_left: TtlLeft,
        random: u64,
    ) -> Option<Timestamp> {
        self.was_refused = true;
        self.jitter.handle_split();
        self.before_end(now, now + self.jitter.part(random), ttl_left)
    }

    /// The lock was given up at one of several nodes: when to try again, instead of at `next`.
    ///
    /// Each node notifies of one and the same release; only the first of them changes anything.
    #[must_use]
    pub fn handle_notification(
        &mut self,
        now: Timestamp,
        next: Timestamp,
        random: u64,
    ) -> Timestamp {
        // Another may be faster, and hold the lock as shortly.
        self.backoff.reset();
        let is_soon = next <= now + self.jitter.whole();
        if is_soon { next } else { now + self.jitter.part(random) }
    }

    /// The lock went to another waiter, for a provisional grant; this one becomes the successor
    /// watch: when to look after it.
    #[must_use]
    pub fn handle_successor_watch(
        &mut self,
        now: Timestamp,
        grant_ttl_ms: u64,
        granted: Channel,
    ) -> Option<Timestamp> {
        self.suspect = Some(granted);
        self.clip(now, now + Duration::from_millis(grant_ttl_ms) + AFTER_END)
    }

    /// The state is unknown: when to try again, or `None` to give up.
    ///
    /// A wait without a limit outlasts an outage only when a server has said before that it is
    /// held. A server that was never reached is more likely a wrong address than an outage.
    #[must_use]
    pub fn handle_unknown(&mut self, now: Timestamp, random: u64) -> Option<Timestamp> {
        if self.until.is_none() && !self.was_refused {
            return None;
        }
        self.handle_not_yet(now, random)
    }

    /// Nodes do not know yet, and will soon: when to try again, or `None` to give up. Unlike an
    /// outage that ends by itself, so a wait without an end outlasts it.
    #[must_use]
    pub fn handle_not_yet(&mut self, now: Timestamp, random: u64) -> Option<Timestamp> {
        let poll = now + self.backoff.next_delay(random);
        self.clip(now, poll)
    }

    /// The last moment of a try; [`Timestamp::MAX`] without a limit.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.until.unwrap_or(Timestamp::MAX)
    }

    /// What is left of the wait: the time limit of the next try. `None` without a limit.
    #[must_use]
    pub fn left(&self, now: Timestamp) -> Option<Duration> {
        self.until.map(|until| until.since(now))
    }

    /// At the end of the lease at the latest, if that is known.
    fn before_end(&self, now: Timestamp, next: Timestamp, left: TtlLeft) -> Option<Timestamp> {
        let end = left.get().map_or(Timestamp::MAX, |left| now + left + AFTER_END);
        self.clip(now, next.min(end))
    }

    fn clip(&self, now: Timestamp, next: Timestamp) -> Option<Timestamp> {
        clip(self.deadline(), now, next)
    }
}

/// The last try is at the deadline itself, and after that there is none.
fn clip(deadline: Timestamp, now: Timestamp, next: Timestamp) -> Option<Timestamp> {
    (now < deadline).then(|| next.min(deadline))
}

/// The first poll comes soon, since most holds are short.
const MIN_POLL_PAUSE: Duration = Duration::from_millis(10);

/// About four polls a second: what the peers do, who know no better way.
const MAX_POLL_PAUSE: Duration = Duration::from_millis(250);

/// The head looks after a foreign holder ten times a second.
const FOREIGN_POLL: Duration = Duration::from_millis(100);

/// When the head looks first, and has the key watched from then on.
const HEAD_FIRST: Duration = Duration::from_millis(250);

/// How often the head polls whether somebody deleted the lock, where nothing notifies it.
const HEAD_POLL: Duration = Duration::from_secs(1);

/// A server deletes a key only when its clock is past the end, and it counts whole milliseconds.
const AFTER_END: Duration = Duration::from_millis(2);

/// No waiter believes a TTL that is longer: the server's clock may have been stepped.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Each place further back looks a second later, up to half a minute.
const STAGGER: Duration = Duration::from_secs(1);
const MAX_STAGGERED: u32 = 30;

#[cfg(test)]
mod tests;
