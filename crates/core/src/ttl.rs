//! How long a key lives, and how much of that a holder may believe.

use std::{fmt, time::Duration};

/// The lifetime that a server gives a lock's key: whole milliseconds, from 10 ms to 2^53 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(u64);

impl Ttl {
    /// The shortest TTL of a lease that nobody renews.
    ///
    /// Below it the drift allowance and one round trip leave nothing to work in.
    pub const MIN: Duration = Duration::from_millis(10);

    /// The shortest TTL.
    pub const MIN_TTL: Self = Self(10);

    /// The shortest TTL of a lease that is renewed in the background: three renewals must fit.
    pub const MIN_RENEWED: Duration = Duration::from_millis(100);

    /// The longest TTL, in milliseconds: scripts count in doubles, exact up to 2^53.
    pub const MAX_MS: u64 = 1 << 53;

    /// Takes a lifetime; what is below a millisecond is cut off.
    ///
    /// # Errors
    ///
    /// [`TtlError`] when it is zero, below [`Ttl::MIN`], or over [`Ttl::MAX_MS`].
    pub fn new(lifetime: Duration) -> Result<Self, TtlError> {
        Self::at_least(Self::MIN, lifetime)
    }

    /// Takes a lifetime for a lease that is renewed in the background.
    ///
    /// # Errors
    ///
    /// As [`Ttl::new`], with [`Ttl::MIN_RENEWED`] as the least.
    pub fn renewed(lifetime: Duration) -> Result<Self, TtlError> {
        Self::at_least(Self::MIN_RENEWED, lifetime)
    }

    /// The error names the one bound that counts, so that a valid value never meets another.
    fn at_least(least: Duration, lifetime: Duration) -> Result<Self, TtlError> {
        let error = |bound| Err(TtlError { lifetime, bound });
        if lifetime < least {
            return error(TtlBound::Min(least));
        }
        match u64::try_from(lifetime.as_millis()) {
            Ok(ms) if ms <= Self::MAX_MS => Ok(Self(ms)),
            _ => error(TtlBound::Max),
        }
    }

    /// A lifetime that somebody wrote in milliseconds; none for zero, or over [`Ttl::MAX_MS`].
    pub(crate) const fn from_millis(ms: u64) -> Option<Self> {
        if 0 < ms && ms <= Self::MAX_MS { Some(Self(ms)) } else { None }
    }

    /// The lifetime in milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The lifetime.
    #[must_use]
    pub const fn get(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// How long a holder may believe in the lease, from before its request was sent.
    #[must_use]
    pub fn validity(self) -> Duration {
        self.get().saturating_sub(Drift::of(self).get())
    }
}

/// The allowance for clocks that run at different rates: 1 % of the TTL, rounded up, and 2 ms.
///
/// With both rates within 1±r, a TTL needs 2r of itself; 1 % covers r = 5 000 ppm, ten times what
/// ntpd slews. The 2 ms are the server's expiry precision of 1 ms and 1 ms of rounding, as in
/// RedLock.net.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift(Duration);

impl Drift {
    /// The allowance for a lease of this TTL.
    #[must_use]
    pub const fn of(ttl: Ttl) -> Self {
        Self(Duration::from_millis(ttl.0.div_ceil(100) + 2))
    }

    /// The allowance.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// How long before the end of validity a lease counts as lost: the larger of 50 ms and 2 % of the
/// TTL, but never more than half of the validity.
///
/// Timers are late on a busy machine; the signal must still come before the key can end.
#[must_use]
pub fn loss_margin(ttl: Ttl) -> Duration {
    let margin = Duration::from_millis(50).max(ttl.get() / 50);
    margin.min(ttl.validity() / 2)
}

/// Why a lifetime is no TTL. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlError {
    lifetime: Duration,
    bound: TtlBound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TtlBound {
    Min(Duration),
    Max,
}

impl std::error::Error for TtlError {}

/// The least TTL. Where a lease is renewed, what would do without renewal is named as well.
struct MinTtl(Duration);

impl fmt::Display for MinTtl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Ttl::MIN)?;
        let is_larger = self.0 > Ttl::MIN;
        if is_larger { write!(f, ", and {:?} for a renewed lease", self.0) } else { Ok(()) }
    }
}

impl fmt::Display for TtlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lifetime = self.lifetime;
        match self.bound {
            TtlBound::Min(least) if lifetime.is_zero() => {
                write!(f, "the TTL is zero; it must be at least {}", MinTtl(least))
            }
            TtlBound::Min(least) if lifetime < Duration::from_millis(1) => write!(
                f,
                "the TTL of {lifetime:?} is below 1ms, the unit of a server's clock; it must be at \
                 least {}",
                MinTtl(least)
            ),
            TtlBound::Min(least) => {
                write!(f, "the TTL of {lifetime:?} is below the least allowed, {least:?}")
            }
            TtlBound::Max => {
                write!(f, "the TTL of {lifetime:?} is over the most allowed, 2^53 ms")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn bad_lifetimes_name_value_and_bound() {
        for (lifetime, words) in [
            (Duration::ZERO, "zero"),
            (Duration::from_micros(999), "999µs is below 1ms"),
            (ms(9), "9ms is below the least allowed, 10ms"),
            (ms(Ttl::MAX_MS + 1), "over the most allowed, 2^53 ms"),
            (Duration::MAX, "over the most allowed, 2^53 ms"),
        ] {
            let error = Ttl::new(lifetime).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn every_error_names_the_same_minimum_ttl() {
        for lifetime in [Duration::ZERO, Duration::from_micros(1), ms(1), ms(5), ms(10), ms(99)] {
            let error = Ttl::renewed(lifetime).unwrap_err().to_string();
            assert!(error.contains("100ms"), "{error}");
        }
        let error = Ttl::renewed(ms(5)).unwrap_err().to_string();
        assert_eq!(error, "the TTL of 5ms is below the least allowed, 100ms");
    }

    #[test]
    fn lifetimes_at_their_bounds_are_accepted() {
        assert!(Ttl::new(ms(10)).is_ok() && Ttl::renewed(ms(100)).is_ok());
        assert!(Ttl::new(ms(Ttl::MAX_MS)).is_ok());
        assert_eq!(Ttl::new(Duration::from_micros(10_999)).unwrap().as_millis(), 10);
    }

    #[test]
    fn validity_excludes_the_drift() {
        for (ttl, drift, margin) in
            [(10, 3, 3), (100, 3, 48), (250, 5, 50), (10_000, 102, 200), (10_001, 103, 200)]
        {
            let ttl = Ttl::new(ms(ttl)).unwrap();
            assert_eq!(Drift::of(ttl).get(), ms(drift));
            assert_eq!(ttl.validity(), ttl.get() - ms(drift));
            assert_eq!(loss_margin(ttl).as_millis(), margin, "{ttl:?}");
        }
    }
}
