//! Random pauses of waiters that are notified of one release at the same moment.

use std::time::Duration;

/// How long the tries of several waiters are spread over, where several nodes vote.
///
/// If all tried at once, each would get some of the nodes and none a majority. So each waits a
/// random part of a time that is longer than a round of votes takes, and that doubles each time the
/// votes are split.
#[derive(Clone, Debug)]
pub(crate) struct JitterWindow {
    /// The shortest time that a round of votes took.
    round: Duration,
    /// How often the votes were split since another was last known to hold the lock.
    splits: u32,
}

impl JitterWindow {
    pub(crate) const fn new() -> Self {
        Self { round: MAX_ROUND, splits: 0 }
    }

    /// A round of votes took so long.
    pub(crate) fn handle_round(&mut self, took: Duration) {
        self.round = self.round.min(took);
    }

    /// The votes were split: the window gets wider.
    pub(crate) fn handle_split(&mut self) {
        self.splits = (self.splits + 1).min(MAX_SPLITS);
    }

    /// Another is known to hold the lock: the next release begins with the first window.
    pub(crate) const fn handle_held(&mut self) {
        self.splits = 0;
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Duration {
        MIN.max(self.round * ROUNDS) * 2_u32.pow(self.splits)
    }

    /// A random part of it.
    pub(crate) fn part(&self, random: u64) -> Duration {
        let thousandths = u32::try_from(random % 1_000).unwrap_or_default();
        self.whole() / 1_000 * thousandths
    }
}

/// On one host a round of votes takes less than 1 ms: a single waiter tries after half of this on
/// average, and sixteen are half a millisecond apart.
const MIN: Duration = Duration::from_millis(8);

/// Further away: of two waiters one is a round ahead of the other, more often than not.
const ROUNDS: u32 = 4;

/// No round is believed to take longer: one node that is slow says nothing of the others.
const MAX_ROUND: Duration = Duration::from_millis(50);

/// An eighth of a second, or longer where a round takes longer.
const MAX_SPLITS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_window_doubles_while_the_votes_are_split() {
        let mut window = JitterWindow::new();
        window.handle_round(ms(1));
        for whole in [8, 16, 32, 64, 128, 128] {
            assert_eq!(window.whole(), ms(whole));
            window.handle_split();
        }
        window.handle_held();
        assert_eq!(window.whole(), ms(8));
    }

    #[test]
    fn the_window_is_longer_than_a_round_and_ignores_slow_nodes() {
        let mut window = JitterWindow::new();
        assert_eq!(window.whole(), ms(200), "no round yet");
        for (took, whole) in [(1_000, 200), (20, 80), (1_000, 80), (5, 20), (1, 8), (0, 8)] {
            window.handle_round(ms(took));
            assert_eq!(window.whole(), ms(whole), "{took}");
        }
    }

    #[test]
    fn delays_are_uniform_within_the_window() {
        let mut window = JitterWindow::new();
        window.handle_round(ms(1));
        assert_eq!(window.part(0), Duration::ZERO);
        assert_eq!(window.part(1_250), ms(2));
        assert_eq!(window.part(999), Duration::from_micros(7_992));
    }
}
