//! A server's wall clock beside the clock of leases: did it jump?

use std::time::Duration;

use tenure_core::{Drift, Timestamp, Ttl};

/// What is known of the wall clock of one run of a server.
///
/// The server reads its clock between our request and its reply, so each look says between which
/// two values it was ahead of ours. Two looks that cannot both be true of clocks that run at most
/// 500 ppm wrong each, which is as far as `adjtimex` bends them, are a jump. However late a look
/// is, it makes no jump out of nothing: it only says less.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    last: Option<Look>,
    /// Each is smaller than those before it: an earlier and smaller one is of no interest.
    jumps: Vec<Jump>,
}

/// How far a server's wall clock was ahead of ours, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Look {
    received: Timestamp,
    least: i64,
    most: i64,
}

/// A jump of a wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jump {
    /// When it was noticed.
    pub(super) seen: Timestamp,
    /// How far it was at least, beyond what clocks do by themselves.
    pub(super) by: Duration,
    pub(super) is_forward: bool,
    /// It was told to the log.
    pub(super) is_told: bool,
}

impl WallClock {
    /// The node has told its wall clock, in microseconds, to a request of that time.
    pub(super) fn look(&mut self, sent: Timestamp, received: Timestamp, wall_us: u64) {
        let wall_us = i64::try_from(wall_us).unwrap_or(i64::MAX);
        let ahead_of = |time| wall_us.saturating_sub(micros(time));
        let look = Look { received, least: ahead_of(received), most: ahead_of(sent) };
        let Some(last) = self.last else {
            self.last = Some(look);
            return;
        };
        if let Some(jump) = last.jump_until(&look) {
            self.jumps.retain(|earlier| earlier.by > jump.by);
            self.jumps.push(jump);
        } else if last.is_better_known_than(&look) {
            return;
        }
        self.last = Some(look);
    }

    /// Another run answers, perhaps on another host. What the clock did is still true of its keys.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// The last jump that matters at `now` where nobody has a longer TTL, and until when.
    pub(super) fn jumped(
        &mut self,
        now: Timestamp,
        longest: Ttl,
    ) -> Option<(&mut Jump, Timestamp)> {
        let allowed = Drift::of(longest).get();
        let jump = self.jumps.iter_mut().rfind(|jump| jump.by > allowed)?;
        let until = jump.seen + super::span(longest);
        (now < until).then_some((jump, until))
    }

    /// How far it is ahead of ours, in microseconds.
    pub(super) fn ahead_us(&self) -> Option<i64> {
        self.last.map(|look| look.least)
    }
}

impl Look {
    /// What the clock did until a later look, if it did more than it may.
    fn jump_until(&self, later: &Self) -> Option<Jump> {
        let forward = later.least.saturating_sub(self.most);
        let back = self.least.saturating_sub(later.most);
        let by = u64::try_from(forward.max(back)).ok()?;
        let by = Duration::from_micros(by).checked_sub(bent(self.time_to(later)))?;
        let jump = Jump { seen: later.received, by, is_forward: forward > back, is_told: false };
        // No drift allowance is smaller.
        (by > Drift::of(Ttl::LEAST).get()).then_some(jump)
    }

    /// Whether it still says more than a later one.
    fn is_better_known_than(&self, later: &Self) -> bool {
        self.width() + 2 * bent(self.time_to(later)) < later.width()
    }

    fn width(&self) -> Duration {
        Duration::from_micros(self.most.abs_diff(self.least))
    }

    fn time_to(&self, later: &Self) -> Duration {
        later.received.since(self.received)
    }
}

/// How far two clocks may run apart in this time by being bent: 500 ppm each.
fn bent(time: Duration) -> Duration {
    time / 1_000
}

fn micros(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanos() / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    fn ttl(secs: u64) -> Ttl {
        Ttl::new(Duration::from_secs(secs)).unwrap()
    }

    /// A clock that shows so many milliseconds at these looks, each sent and received then.
    fn clock(looks: &[(u64, u64, u64)]) -> WallClock {
        let mut clock = WallClock::default();
        for (sent, received, wall) in looks {
            clock.look(at(*sent), at(*received), wall * 1_000);
        }
        clock
    }

    fn jumped(clock: &mut WallClock, now: u64, longest: u64) -> Option<(bool, u64)> {
        let (jump, _) = clock.jumped(at(now), ttl(longest))?;
        Some((jump.is_forward, jump.by.as_millis().try_into().unwrap()))
    }

    /// A lock of 10 s allows 102 ms, and one of 30 s 302 ms.
    #[test]
    fn a_jump_is_more_than_the_drift_beyond_what_both_looks_allow() {
        // After 10 s the clocks may be 10 ms apart by being bent.
        let mut clock = clock(&[(0, 10, 50_000), (10_000, 10_010, 60_122)]);
        assert_eq!(jumped(&mut clock, 10_010, 10), None, "112 - 10 is not above 102");
        let mut clock = self::clock(&[(0, 10, 50_000), (10_000, 10_010, 60_123)]);
        assert_eq!(jumped(&mut clock, 10_010, 10), Some((true, 103)));
        assert_eq!(jumped(&mut clock, 10_010, 30), None);
        let mut back = self::clock(&[(0, 10, 4_000_000), (1_000, 1_010, 401_000)]);
        assert_eq!(jumped(&mut back, 1_010, 30), Some((false, 3_599_989)));
    }

    #[test]
    fn it_is_over_when_every_key_of_before_has_ended() {
        let mut clock = clock(&[(0, 0, 50_000), (1_000, 1_000, 91_000)]);
        assert!(jumped(&mut clock, 1_000 + 10_101, 10).is_some());
        assert!(jumped(&mut clock, 1_000 + 10_102, 10).is_none());
        assert!(jumped(&mut clock, 1_000 + 10_102, 30).is_some());
    }

    /// This process was stopped between a request and its reply for 40 s.
    #[test]
    fn a_late_look_is_no_jump_and_hides_none() {
        let mut stopped =
            clock(&[(0, 0, 50_000), (1_000, 41_000, 51_000), (42_000, 42_000, 92_000)]);
        assert_eq!(jumped(&mut stopped, 42_000, 10), None);
        let mut read_late = clock(&[(0, 0, 50_000), (1_000, 41_000, 90_900)]);
        assert_eq!(jumped(&mut read_late, 41_000, 10), None);
        // The look from before the stop says more, and is kept.
        let mut jumped_then =
            clock(&[(0, 0, 50_000), (1_000, 41_000, 51_000), (42_000, 42_000, 93_000)]);
        assert_eq!(jumped(&mut jumped_then, 42_000, 10), Some((true, 958)));
    }

    #[test]
    fn a_small_jump_does_not_hide_a_larger_one_nor_the_other_way_round() {
        let looks = [(0, 0, 50_000), (1_000, 1_000, 91_000), (11_000, 11_000, 101_150)];
        let mut clock = clock(&looks);
        assert_eq!(jumped(&mut clock, 11_001, 30), Some((true, 39_999)));
        assert_eq!(jumped(&mut clock, 11_001, 10), Some((true, 140)));
        clock.look(at(12_000), at(12_000), 142_150_000);
        assert_eq!(clock.jumps.len(), 1, "the larger and later one says it all");
    }

    #[test]
    fn another_run_is_not_compared() {
        let mut clock = clock(&[(0, 0, 50_000)]);
        clock.forget();
        clock.look(at(1_000), at(1_000), 91_000_000);
        assert_eq!(jumped(&mut clock, 1_000, 10), None);
    }

    #[test]
    fn no_reading_is_too_large() {
        let mut clock = WallClock::default();
        clock.look(at(0), at(0), u64::MAX);
        clock.look(at(1), Timestamp::MAX, 0);
        assert_eq!(clock.ahead_us(), Some(-i64::try_from(u64::MAX / 1_000).unwrap()));
    }
}
