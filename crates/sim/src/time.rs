//! Ticks, and the spans of the real arithmetic that they stand for.
//!
//! A span of n ticks is a little shorter than that, so that a key is gone at the n-th tick (a
//! server keeps it to the very end) and the timer for its end, 2 ms later, is due there too.

use std::time::Duration;

use tenure_core::{NodeTime, Timestamp, Ttl};

use crate::{names::EPOCH_US, rank::FRESH, state::Left};

/// One tick, in milliseconds: as much as a waiter looks later for each place further back.
pub(crate) const TICK: Left = 1_000;

/// The TTL of a lease: two ticks.
pub(crate) const LEASE: Left = 1_990;

/// The TTL that a renewal asks for: three ticks.
pub(crate) const RENEWED: Left = 2_990;

/// The TTL of a hand-over: one tick.
pub(crate) const GRANT_TTL: Left = 990;

/// Older than this, no message gives any right: an age is not counted further.
pub(crate) const OLDEST: u8 = 3;

/// The server's clocks, at every moment.
pub(crate) const NOW: NodeTime = NodeTime { ttl_ms: 1_000_000, wall_us: EPOCH_US + FRESH as u64 };

/// A client's clock, at every moment.
pub(crate) const HERE: Timestamp = Timestamp::from_nanos(1_000_000_000_000);

/// A TTL.
pub(crate) fn lasting(ms: Left) -> Ttl {
    Ttl::new(Duration::from_millis(ms.into())).expect("a TTL of some ticks")
}

/// What is left of the validity of a TTL that was asked for some ticks ago; 0 when it is over.
pub(crate) fn validity(ttl: Left, age: u8) -> Left {
    let validity = lasting(ttl).validity().as_millis();
    let validity = Left::try_from(validity).unwrap_or(Left::MAX);
    validity.saturating_sub(Left::from(age) * TICK)
}

/// The tick at which a moment has come.
pub(crate) fn ticks_until(moment: Timestamp) -> u8 {
    let ticks = moment.since(HERE).as_millis().div_ceil(TICK.into());
    u8::try_from(ticks).unwrap_or(u8::MAX)
}
