//! How a lock is to be taken, setting by setting.

use std::time::Duration;

use tenure_core::Wait;

use super::{Lock, Renewal};
#[cfg(doc)]
use crate::LockGuard;

impl Lock {
    /// The lifetime of the key: how long others wait for a holder that died.
    ///
    /// 10 s unless set; from 100 ms (10 ms with [`Renewal::Manual`]) to 2^53 ms. A longer one
    /// outlasts longer outages of the server; a shorter one frees the lock sooner after a crash and
    /// costs more renewals. It says nothing about how long the lock may be held: see
    /// [`Lock::renewal`] and [`Lock::max_hold`].
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long [`Lock::acquire`] and [`Lock::run`] wait; [`Wait::Forever`] unless set.
    ///
    /// A wait without an end outlasts an outage of the server only after the server has answered
    /// once that the lock is held: a server that was never reached fails the call. It does outlast
    /// that too many of several servers may not vote yet: see [`Lock::max_ttl`].
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

    /// The longest a lease may be held; without an end unless set.
    ///
    /// When it is over, [`LockGuard::lost`] resolves and nothing is renewed any more: the bound on
    /// a task that hangs. The key then still lives for up to the TTL, so the holder has time to
    /// stop.
    #[must_use]
    pub fn max_hold(mut self, longest: Duration) -> Self {
        self.settings.max_hold = Some(longest);
        self
    }

    /// The least validity that a new lease must have left; none unless set.
    ///
    /// An answer that comes so late that less is left counts as no answer, and the attempt is
    /// undone.
    #[must_use]
    pub fn min_validity(mut self, least: Duration) -> Self {
        self.settings.min_validity = Some(least);
        self
    }

    /// How long each server may take to grant or refuse the lock.
    ///
    /// Unless set it follows the TTL and the way to the servers: one server alone has a quarter of
    /// the TTL, from 50 ms to 2 s, each of several a twentieth, from 50 ms to 1 s; and a far server
    /// has four round trips as they were measured, or 500 ms before that, while its answer is of
    /// use. All are asked at once, so a server that hangs costs this once, and only where the
    /// others do not decide.
    ///
    /// A lease that is renewed needs two round trips within its TTL: a lock whose servers are too
    /// far away for that is refused ([`TooFar`](crate::NodeErrorKind::TooFar)).
    #[must_use]
    pub fn node_limit(mut self, longest: Duration) -> Self {
        self.settings.node_limit = Some(longest);
        self
    }

    /// The longest TTL with which anybody takes this lock, other processes and extensions included:
    /// 30 s unless set, and never below the lock's own TTL.
    ///
    /// It matters where several servers vote. A server that is new, was emptied, restarted, or was
    /// a replica may have forgotten locks that others hold, so it does not vote until a lock of
    /// this TTL is over, about 1 % later than it; nor does one whose wall clock was stepped by more
    /// than that 1 %. One that keeps its keys over a restart can be declared so by its address,
    /// with `?durable=yes`; new ones can be opened by hand:
    /// [`Client::open_new`](crate::Client::open_new).
    #[must_use]
    pub fn max_ttl(mut self, longest: Duration) -> Self {
        self.settings.max_ttl = Some(longest);
        self
    }

    /// Whether those of several servers that have lost the key are given it again in the
    /// background; they are unless set.
    ///
    /// Each renewal finds out which they are. With their keys back the lease outlasts the next
    /// loss; without, each such loss brings it nearer to one after which another gets the lock. A
    /// key that was given again says nothing of the time before, and counts only after a renewal
    /// has proved that a majority had theirs meanwhile. Switch it off where a key that an
    /// administrator deletes on some of the servers must stay away.
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

    /// Leaves the key free for 300 ms in one of so many hand-overs, on average (default: never). At
    /// least 1.
    ///
    /// While waiters of tenure queue, a release hands the lock to the next of them, and the clients
    /// of other libraries, which poll, never find it free: without this setting they starve
    /// while there is a queue. With it, a release leaves the key free a little longer than most of
    /// them pause, and the next waiter in the queue takes it after that if no poller has. The price
    /// is that pause. Pollers get a chance, not a place in the queue. Several servers have no
    /// queue, so the setting has no effect there.
    #[must_use]
    pub fn yield_to_pollers(mut self, hand_overs: u32) -> Self {
        self.settings.yield_to_pollers = Some(hand_overs);
        self
    }

    /// Whether [`Lock::steal`] and [`Lock::force_release`] destroy what no lock library writes; not
    /// unless set.
    ///
    /// They refuse a value of another type than string, an empty string, one longer than 255 bytes,
    /// and one that begins like JSON or XML (`{`, `[`, `<`): it is somebody's data under a mistaken
    /// key. A short string may be data, too, and is taken for a lock: nothing in it tells.
    #[must_use]
    pub fn overwrite_data(mut self, anything: bool) -> Self {
        self.settings.overwrite_data = anything;
        self
    }

    /// The name under which this lock is counted in metrics: `default` unless set.
    ///
    /// Keys are without number and make no good label; name the kind of lock instead.
    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        self.settings.class = class.into();
        self
    }
}
