//! Growing, jittered delays.

use std::time::Duration;

/// Delays that double from a least to a most, each spread over ±50 % by a random number.
///
/// The spread keeps clients that failed together from trying together again.
#[derive(Clone, Debug)]
pub struct Backoff {
    least: Duration,
    most: Duration,
    step: Duration,
}

impl Backoff {
    /// Starts at `least`; never plans more than `most` (before the spread).
    #[must_use]
    pub const fn new(least: Duration, most: Duration) -> Self {
        Self { least, most, step: least }
    }

    /// The next delay, from 0.5 to 1.5 times the step.
    #[must_use]
    pub fn next_delay(&mut self, random: u64) -> Duration {
        let step = self.step;
        self.step = (step * 2).min(self.most);
        jittered(step, random)
    }

    /// Starts again at the least delay, after a success.
    pub const fn reset(&mut self) {
        self.step = self.least;
    }
}

/// A delay spread evenly over 0.5 to 1.5 times `delay`.
pub(crate) fn jittered(delay: Duration, random: u64) -> Duration {
    let permille = u32::try_from(random % 1_001).unwrap_or_default();
    delay / 2 + delay / 1_000 * permille
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_restart() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(10), ms(35));
        let delays: Vec<_> = (0..4).map(|_| backoff.next_delay(500)).collect();
        assert_eq!(delays, [ms(10), ms(20), ms(35), ms(35)]);
        backoff.reset();
        assert_eq!(backoff.next_delay(500), ms(10));
    }

    #[test]
    fn delays_are_spread() {
        let ms = Duration::from_millis;
        assert_eq!(jittered(ms(10), 0), ms(5));
        assert_eq!(jittered(ms(10), 1_000), ms(15));
        assert_ne!(jittered(ms(10), 123), jittered(ms(10), 124));
    }
}
