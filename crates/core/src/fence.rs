//! Fencing numbers: how the next one comes from the last.

use std::{fmt, time::Duration};

use crate::Ttl;

/// A number that grows with each acquisition of a lock; the *resource* checks it.
///
/// A holder that was paused past its lease does not know it. A resource that remembers the largest
/// number it has seen can refuse the smaller one. Numbers are below 2^53, so they fit an SQL
/// `BIGINT` and are exact in JSON and in Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The largest number, 2^53 - 1: the last integer that scripts, which count in doubles, keep
    /// apart from its neighbours.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The smallest number, below that of every grant.
    pub const MIN: Self = Self(0);

    /// Takes a number that a node gave, or `None` above [`FencingToken::MAX`].
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<FencingToken> for u64 {
    fn from(number: FencingToken) -> Self {
        number.0
    }
}

/// For columns of databases, which are signed. Exact: no number exceeds 2^53 - 1.
impl From<FencingToken> for i64 {
    fn from(number: FencingToken) -> Self {
        number.0.cast_signed()
    }
}

/// What stands at a key that tenure derives when it is not tenure's. A grant is refused then, and
/// nothing written.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FenceFault {
    /// A value of another type than string.
    #[error("the fence key holds a value of another type")]
    Type,
    /// A string that is no integer from 1 to 2^53 - 1, in digits without a leading zero.
    #[error("the fence key holds no number from 1 to 2^53 - 1")]
    Value,
    /// The largest number: there is no next one.
    #[error("the fence key holds 2^53 - 1, the last number")]
    Exhausted,
    /// The number that was to be written is far ahead of the node's clock: nothing was written.
    #[error("a number more than an hour ahead of its clock was not taken over")]
    Ahead,
    /// The queue's key, not the fence key, holds a value of another type than a sorted set.
    #[error("the queue key holds a value of another type")]
    Queue,
}

/// The number of the next grant: one more than the last, and at least `least`: the node's clock in
/// µs, or a proposal ([`least_number`]).
///
/// The clock keeps numbers growing after the counter itself was lost (a flush, a failover, the end
/// of the fence key's TTL); the counter keeps them growing when the clock steps back. The server's
/// own clock is used, so a client with a wrong one changes nothing.
///
/// # Errors
///
/// [`FenceFault::Exhausted`] when the next number would be over [`FencingToken::MAX`].
pub const fn next_number(last: u64, least: u64) -> Result<FencingToken, FenceFault> {
    let next = last.saturating_add(1);
    let next = if least > next { least } else { next };
    match FencingToken::new(next) {
        Some(number) => Ok(number),
        None => Err(FenceFault::Exhausted),
    }
}

/// What the next number is at least: the node's clock or, where several nodes vote, the number that
/// is proposed to all of them.
///
/// It counts for no more than [`MAX_CLOCK_DISTANCE`] from the node's own clock. A client whose
/// clock is far ahead must not use up the numbers; and one whose clock is far behind must not be
/// given a smaller number than was given before, when the node has forgotten that.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "an hour in microseconds fits")]
pub fn least_number(proposal: Option<FencingToken>, wall_us: u64) -> u64 {
    let apart = MAX_CLOCK_DISTANCE.as_micros() as u64;
    let (least, most) = (wall_us.saturating_sub(apart), wall_us.saturating_add(apart));
    proposal.map_or(wall_us, |proposal| proposal.get().clamp(least, most))
}

/// Whether a number is too far ahead to be written at a node: by more than [`MAX_CLOCK_DISTANCE`]
/// of both its clock and its last number.
///
/// One counter of several that is damaged, or was drawn from a clock that was far ahead, must not
/// become everybody's: no number would be left, or all would be ahead for as long as the counter
/// lives. Where a node's own numbers are ahead already, since its clock stepped back, they go on.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "an hour in microseconds fits")]
pub fn is_far_ahead(number: FencingToken, last: Option<FencingToken>, wall_us: u64) -> bool {
    let from = last.map_or(wall_us, |last| last.get().max(wall_us));
    number.get() > from.saturating_add(MAX_CLOCK_DISTANCE.as_micros() as u64)
}

/// The number that so many nodes can come to agree on, when they gave these: the largest that is
/// not far ahead of the smallest that so many can have. `None` when there are fewer.
///
/// It is never below a number that so many nodes had already.
#[must_use]
pub fn agreeable(
    numbers: impl Iterator<Item = FencingToken>,
    needed: usize,
) -> Option<FencingToken> {
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    let least = *numbers.get(needed.checked_sub(1)?)?;
    numbers.into_iter().rfind(|number| !is_far_ahead(*number, None, least.get()))
}

/// How far from a node's clock a proposal counts. Far less than what a node keeps a number for.
pub const MAX_CLOCK_DISTANCE: Duration = Duration::from_secs(60 * 60);

/// What an attempt at several nodes proposes: their clock as its client knows it, in microseconds,
/// and more than any number that the client has seen of this lock, unless that is far ahead.
///
/// Nodes that had different last numbers so give the same next one, and one round trip is enough.
#[must_use]
pub fn proposal(seen: Option<FencingToken>, wall_us: u64) -> FencingToken {
    let seen = seen.filter(|seen| !is_far_ahead(*seen, None, wall_us));
    let next = seen.map_or(0, |seen| seen.get() + 1);
    FencingToken(wall_us.max(next).min(FencingToken::MAX.get()))
}

/// The fence key outlives the lease by this much: longer than a stale client stays around.
pub const FENCE_FLOOR_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The lifetime of the fence key of a lease with this TTL, in milliseconds.
///
/// Without an end, a million lock names would leave a million keys forever.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "a day in milliseconds fits")]
pub const fn fence_ttl(ttl: Ttl) -> u64 {
    ttl.as_millis() + FENCE_FLOOR_TTL.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_by_counter_and_by_clock() {
        assert_eq!(next_number(0, 1_000), Ok(FencingToken(1_000)));
        assert_eq!(next_number(1_000, 1_000), Ok(FencingToken(1_001)));
        // A clock that steps back never takes the number back.
        assert_eq!(next_number(5_000, 1_000), Ok(FencingToken(5_001)));
    }

    #[test]
    fn a_number_fits_both_kinds_of_columns() {
        assert_eq!(u64::from(FencingToken::MAX), (1 << 53) - 1);
        assert_eq!(i64::from(FencingToken::MAX), (1 << 53) - 1);
    }

    #[test]
    fn proposals_replace_the_clock_within_bounds() {
        let hour = 3_600_000_000;
        assert_eq!(least_number(None, 1_000), 1_000);
        assert_eq!(least_number(Some(FencingToken(7)), 1_000), 7);
        assert_eq!(least_number(Some(FencingToken(7)), 7 + hour), 7);
        assert_eq!(least_number(Some(FencingToken(7)), 8 + hour), 8);
        assert_eq!(least_number(Some(FencingToken(1_000 + hour)), 1_000), 1_000 + hour);
        assert_eq!(least_number(Some(FencingToken(1_001 + hour)), 1_000), 1_000 + hour);
        assert_eq!(proposal(None, 1_000).get(), 1_000);
        assert_eq!(proposal(Some(FencingToken(999)), 1_000).get(), 1_000);
        assert_eq!(proposal(Some(FencingToken(1_000)), 1_000).get(), 1_001);
        assert_eq!(proposal(Some(FencingToken(1_000 + hour)), 1_000).get(), 1_001 + hour);
        assert_eq!(proposal(Some(FencingToken(1_001 + hour)), 1_000).get(), 1_000);
        assert_eq!(proposal(Some(FencingToken::MAX), 1_000).get(), 1_000);
        assert_eq!(proposal(None, FencingToken::MAX.get()), FencingToken::MAX);
    }

    #[test]
    fn a_number_far_ahead_affects_only_its_own_node() {
        let hour = 3_600_000_000;
        let number = |number| FencingToken(number);
        assert!(!is_far_ahead(number(1_000 + hour), None, 1_000));
        assert!(is_far_ahead(number(1_001 + hour), None, 1_000));
        assert!(!is_far_ahead(number(1_001 + hour), Some(number(1_001)), 1_000));
        assert!(is_far_ahead(number(1_001 + hour), Some(number(999)), 1_000));
        assert!(!is_far_ahead(FencingToken::MAX, None, u64::MAX));
        let of = |numbers: &[u64], needed| {
            agreeable(numbers.iter().copied().map(FencingToken), needed).map(FencingToken::get)
        };
        assert_eq!(of(&[5, 7, 6], 2), Some(7));
        assert_eq!(of(&[5, 5 + hour, 5 + 2 * hour], 1), Some(5 + hour));
        assert_eq!(of(&[5, FencingToken::MAX.get(), 7], 2), Some(7), "one of three");
        assert_eq!(of(&[5, FencingToken::MAX.get()], 2), Some(FencingToken::MAX.get()));
        assert_eq!((of(&[5], 2), of(&[], 0)), (None, None));
    }

    #[test]
    fn after_the_maximum_there_is_no_number() {
        let max = FencingToken::MAX.get();
        assert_eq!(next_number(max - 1, 0), Ok(FencingToken::MAX));
        assert_eq!(next_number(max, 0), Err(FenceFault::Exhausted));
        assert_eq!(next_number(u64::MAX, 0), Err(FenceFault::Exhausted));
        assert_eq!(FencingToken::new(max + 1), None);
    }
}
