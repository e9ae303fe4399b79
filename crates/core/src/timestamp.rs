//! The core's own clock reading.

use std::{ops::Add, time::Duration};

/// A moment on a clock that never steps and that counts suspend, in nanoseconds.
///
/// `std::time::Instant` is not used: on Linux and macOS it stops while the machine is suspended,
/// and a lease does not. The origin is arbitrary (the boot, usually), so two timestamps may be
/// compared only on one machine and in one boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Later than every other timestamp.
    pub const MAX: Self = Self(u64::MAX);

    /// The timestamp that is `nanos` nanoseconds after the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this, or zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment less `span`, or the clock's origin when that is later.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at [`Timestamp::MAX`]: a TTL may be as long as 2^53 ms.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences_saturate() {
        let start = Timestamp::from_nanos(5);
        assert_eq!(start + Duration::MAX, Timestamp::MAX);
        assert_eq!(start.before(Duration::from_secs(1)), Timestamp::from_nanos(0));
        assert_eq!(start.since(start + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!((start + Duration::from_secs(1)).since(start), Duration::from_secs(1));
    }
}
