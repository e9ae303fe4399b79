//! The clock of leases, which goes on while the machine is suspended.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

use super::platform;
pub(crate) use super::platform::SystemTimer;

/// A moment on the clock of leases, as the time since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// This moment.
    pub(crate) fn now() -> Self {
        Self(platform::since_start())
    }

    /// A moment that another process has passed on.
    pub(crate) const fn since_start(span: Duration) -> Self {
        Self(span)
    }

    /// The time from the start of the machine to this moment.
    pub(crate) const fn of_start(self) -> Duration {
        self.0
    }

    /// The span from another moment to this one; zero when this is the earlier.
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}
