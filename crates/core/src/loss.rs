//! Why a lease is lost.

use std::{fmt, time::Duration};

use crate::{Holder, Timestamp};

/// Why a lease was lost.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// Its validity ended by the local clock before a renewal succeeded.
    Expired,
    /// Its validity ended while this process did not run: it was stopped, its machine was
    /// suspended, or it got no CPU time.
    Paused {
        /// For how long, at least.
        pause: Duration,
    },
    /// Its key is gone from the servers: deleted, flushed, evicted, or lost in a failover.
    Gone,
    /// Another client holds the lock.
    Taken {
        /// The holder.
        holder: Holder,
    },
    /// It reached the limit `max_hold`.
    MaxHold,
    /// It was released, or its guard was dropped or detached.
    Released,
    /// The client was closed, its engine stopped, or this is a forked child: nobody renews.
    EngineStopped,
}

impl LossReason {
    /// Whether only its time ran out: the key may still be there, and
    /// [`LeaseState::handle_proved`](crate::LeaseState::handle_proved) takes such a loss back.
    #[must_use]
    pub const fn ran_out(&self) -> bool {
        matches!(self, Self::Expired | Self::Paused { .. })
    }
}

impl std::error::Error for LossReason {}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the lease ran out before a renewal succeeded"),
            Self::Paused { pause } => write!(
                f,
                "the lease ran out while this process was stopped or suspended for {:.1} s or more",
                pause.as_secs_f64()
            ),
            Self::Gone => f.write_str("the key is gone from the server"),
            Self::Taken { holder } => write!(f, "the lock is held by another: {holder}"),
            Self::MaxHold => f.write_str("the lock was held for the longest time allowed"),
            Self::Released => f.write_str("the lock was released"),
            Self::EngineStopped => f.write_str("the client's engine stopped, so nobody renews"),
        }
    }
}

/// A time in which this process did not run, though it was to run from the beginning of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a span of time")]
pub struct Pause {
    /// When it was to run.
    pub from: Timestamp,
    /// When it ran again.
    pub to: Timestamp,
}

impl Pause {
    /// How long it took.
    #[must_use]
    pub const fn length(self) -> Duration {
        self.to.since(self.from)
    }
}
