//! How a lock is to be taken, setting by setting.

use std::time::Duration;

use tenure_core::Wait;

use super::{Lock, Renewal};
#[cfg(doc)]
use crate::LockGuard;

impl Lock {
    /// The TTL of the key: how long others wait after the holder crashes.
    ///
    /// 10 s unless set; from 100 ms (10 ms with [`Renewal::Manual`]) to 2^53 ms. A longer TTL
    /// outlasts longer outages of the server. A shorter one frees the lock sooner after a crash,
    /// and costs more renewals. It does not limit how long the lock is held: see [`Lock::renewal`]
    /// and [`Lock::max_hold`].
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long [`Lock::acquire`] and [`Lock::run`] wait; [`Wait::Forever`] unless set.
    ///
    /// A wait without a limit outlasts an outage of the server only if the server has answered once
    /// that the lock is held; if the server was never reached, the call fails. If too many of
    /// several servers do not vote yet, it keeps waiting: see [`Lock::max_ttl`].
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.settings.wait = wait;
        self
    }

    /// Whether the lease is renewed in the background; [`Renewal::Background`] unless set.
    #[must_use]
    pub fn renewal(mut self, renewal: Renewal) -> Self {
        self.settings.renewal = renewal;
        self
    }

    /// The longest time that a lease may be held; no limit unless set.
    ///
    /// When it is over, [`LockGuard::lost`] resolves and renewals stop: a limit for work that never
    /// ends. The key then still exists for up to the TTL, so the holder has time to stop.
    #[must_use]
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.settings.max_hold = Some(longest);
        self
    }

    /// The least validity that a new lease must have left; none unless set.
    ///
    /// If the answer arrives so late that less is left, it counts as no answer, and the attempt is
    /// undone.
    #[must_use]
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.settings.min_validity = Some(least);
        self
    }

    /// How long each server may take to grant or refuse the lock.
    ///
    /// By default it depends on the TTL and the distance to the servers. A single server has a
    /// quarter of the TTL, from 50 ms to 2 s; each of several has a twentieth, from 50 ms to 1 s. A
    /// far server has four measured round trips, or 500 ms before the first measurement, as long as
    /// its answer is still useful. All servers are asked at once, so a hung server delays a call at
    /// most by this limit, and only if the others do not decide it.
    ///
    /// A lease that is renewed needs two round trips within its TTL. If the servers are too far
    /// away for that, the lock is refused ([`TooFar`](crate::NodeErrorKind::TooFar)).
    #[must_use]
    pub fn node_limit(mut self, longest: Duration) -> Self {
        self.settings.node_limit = Some(longest);
        self
    }

    /// The longest TTL that any client uses for this lock, other processes and extensions included:
    /// 30 s unless set, and never below the lock's own TTL.
    ///
    /// It matters only for several servers. A server that is new, was emptied, restarted, or was a
    /// replica may have forgotten locks that others hold. It does not vote until this TTL, and
    /// about 1 % more, has passed. The same applies to a server whose wall clock was stepped by
    /// more than that 1 %. `?durable=yes` in its address declares that a server keeps its keys over
    /// a restart; [`Client::open_new`](crate::Client::open_new) lets new servers vote at once.
    #[must_use]
    pub fn max_ttl(mut self, longest: Duration) -> Self {
        self.settings.max_ttl = Some(longest);
        self
    }

    /// Whether a server that has lost the key, one of several, gets it back in the background; on
    /// unless set.
    ///
    /// Each renewal finds these servers. Once the key is back, the lease survives the next loss;
    /// without it, each loss brings the lease closer to losing its majority. A restored key says
    /// nothing about the time before, so it counts only after a renewal has proved that a majority
    /// kept theirs meanwhile. Turn it off if a key that an administrator deletes on some of the
    /// servers must stay deleted.
    #[must_use]
    pub fn repair(mut self, again: bool) -> Self {
        self.settings.repair = again;
        self
    }

    /// The label that others see as the holder: `host/pid` unless set, at most 64 bytes.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.settings.label = Some(label.into());
        self
    }

    /// On average, leaves the key free for 300 ms in one hand-over of this many, at least 1
    /// (default: never).
    ///
    /// While waiters of tenure queue, a release hands the lock to the next of them. The clients of
    /// other libraries poll, never find the lock free, and starve. With this setting, some releases
    /// leave the key free for a little longer than most of those clients pause; then the next
    /// waiter in the queue takes it, unless a poller has. The cost is that pause. Pollers get a
    /// chance, not a place in the queue. Several servers have no queue, so the setting has no
    /// effect there.
    #[must_use]
    pub fn yield_to_pollers(mut self, hand_overs: u32) -> Self {
        self.settings.yield_to_pollers = Some(hand_overs);
        self
    }

    /// Whether [`Lock::steal`] and [`Lock::force_release`] destroy values that no lock library
    /// writes; off unless set.
    ///
    /// They refuse a value of another type than string, an empty string, one longer than 255 bytes,
    /// and one that begins like JSON or XML (`{`, `[`, `<`): such a value is probably other data
    /// under a mistaken key. Any other short string is taken for a lock, since nothing
    /// distinguishes it from one.
    #[must_use]
    pub fn overwrite_data(mut self, anything: bool) -> Self {
        self.settings.overwrite_data = anything;
        self
    }

    /// The name under which this lock is counted in metrics: `default` unless set.
    ///
    /// The number of keys has no bound, so they make no good label; name the kind of lock instead.
    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        self.settings.class = class.into();
        self
    }
}
