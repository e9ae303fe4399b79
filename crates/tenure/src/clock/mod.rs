//! The clocks: one that counts suspend for leases, and the wall clock for numbers.

mod pulse;
mod timer;

use rustix::time::{ClockId, clock_gettime};
use tenure_core::{NodeTime, Timestamp};

pub(crate) use pulse::Pulse;
pub(crate) use timer::Timers;

/// The clock of leases. On Linux the monotonic clock stops while the machine is suspended; this
/// one does not, and neither does a lease. On macOS the monotonic clock counts suspend.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const LEASE_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const LEASE_CLOCK: ClockId = ClockId::Monotonic;

/// Now, on the clock of leases.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_nanos(read(LEASE_CLOCK, 1))
}

/// The two clocks of a node that lives in this process.
pub(crate) fn node_time() -> NodeTime {
    NodeTime { ttl_ms: read(LEASE_CLOCK, 1_000_000), wall_us: read(ClockId::Realtime, 1_000) }
}

/// A clock's reading in units of `nanos_per_unit`; zero before its epoch.
fn read(clock: ClockId, nanos_per_unit: u64) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * (1_000_000_000 / nanos_per_unit) + nanos / nanos_per_unit
}
