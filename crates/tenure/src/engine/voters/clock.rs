//! A server's wall clock beside the clock of leases: did it step?

use std::time::Duration;

use tenure_core::{Drift, MarkerCheck, Timestamp, Ttl};

/// What is known of the wall clock of a server.
///
/// The server reads its clock between our request and its reply, so each reading bounds how far it
/// was ahead of ours. Two readings show a movement if they cannot both be true of clocks that are
/// each at most 500 ppm wrong, which is as far as `adjtimex` slews them. It may be one step, many,
/// or a clock that is made to run faster for a while, as `chronyd` does by up to 8 %
/// (`maxslewrate` in chrony.conf(5)). A late reply widens the bounds of a reading; it never shows a
/// movement that did not happen.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    /// Oldest first. The older they are, the fewer of them are kept.
    readings: Vec<ClockReading>,
    /// The movement that was logged last, and until when that made the node ineligible.
    logged: Option<(Duration, Timestamp)>,
}

/// How far a server's wall clock was ahead of ours, in microseconds, and what it did from then on.
#[derive(Clone, Copy, Debug)]
struct ClockReading {
    received: Timestamp,
    least: i64,
    most: i64,
    /// Another run may be on another host: its clock is not compared with this.
    is_of_this_run: bool,
    /// How far the clock went away from here until any later reading, beyond what clocks do by
    /// themselves. A key that was set here and is there still may end so much too early, or late.
    forward: Duration,
    back: Duration,
}

/// A movement of a wall clock that matters.
#[derive(Debug)]
pub(super) struct ClockStep {
    /// When it was noticed.
    pub(super) seen: Timestamp,
    /// When every key is over that was set before.
    pub(super) until: Timestamp,
    /// How far it was at least, beyond what clocks do by themselves.
    pub(super) by: Duration,
    pub(super) is_forward: bool,
    /// It was not logged yet, and is logged now.
    pub(super) is_first: bool,
}

impl WallClock {
    /// The node has reported its wall clock, in microseconds, to a request of that time.
    pub(super) fn observe(&mut self, sent: Timestamp, received: Timestamp, wall_us: u64) {
        let reading = ClockReading::new(sent, received, wall_us);
        let this_run = self.readings.iter_mut().filter(|earlier| earlier.is_of_this_run);
        this_run.for_each(|earlier| earlier.compare(&reading));
        let last = self.readings.last().filter(|last| last.is_of_this_run);
        let is_better_known =
            |last: &ClockReading| !last.has_moved() && last.is_better_known_than(&reading);
        if !last.is_some_and(is_better_known) {
            self.readings.push(reading);
            self.thin_out();
        }
    }

    /// Another run answers, perhaps on another host. What the clock did is still true of its keys.
    pub(super) fn forget(&mut self) {
        self.readings.iter_mut().for_each(|reading| reading.is_of_this_run = false);
    }

    /// The last movement that matters at `now` where nobody has a longer TTL.
    pub(super) fn stepped(&mut self, now: Timestamp, longest: Ttl) -> Option<ClockStep> {
        let allowed = Drift::of(longest).get();
        let nexts = self.readings.iter().skip(1);
        let mut before = self.readings.iter().zip(nexts);
        let (reading, next) = before.rfind(|(reading, _)| reading.moved() > allowed)?;
        // A key may have been set just before the next reading.
        let (seen, until) = (next.received, next.received + MarkerCheck::span(longest));
        if now >= until {
            return None;
        }
        let (by, is_forward) = (reading.moved(), reading.forward > reading.back);
        // It may go on and on, which is logged again once it is twice as bad.
        let known = self.logged.filter(|(logged, over)| now < *over && by <= *logged * 2);
        let (logged, over) = known.unwrap_or((by, until));
        self.logged = Some((logged, over.max(until)));
        Some(ClockStep { seen, until, by, is_forward, is_first: known.is_none() })
    }

    /// How far it is ahead of ours, in microseconds.
    pub(super) fn ahead_us(&self) -> Option<i64> {
        self.readings.last().filter(|reading| reading.is_of_this_run).map(|reading| reading.least)
    }

    /// Drops readings until two neighbours are about half as far apart as they are old. What a
    /// dropped reading showed, the one before it shows from then on.
    fn thin_out(&mut self) {
        let Some(now) = self.readings.last().map(|reading| reading.received) else { return };
        let mut from = 0_usize;
        while let Some([before, reading, after]) =
            self.readings.get_mut(from..).and_then(|readings| readings.first_chunk_mut())
        {
            let span = after.received.since(before.received);
            if span * 2 <= now.since(after.received) && before.stands_for(reading) {
                before.forward = before.forward.max(reading.forward);
                before.back = before.back.max(reading.back);
                self.readings.remove(from + 1);
            } else {
                from += 1;
            }
        }
    }
}

impl ClockReading {
    fn new(sent: Timestamp, received: Timestamp, wall_us: u64) -> Self {
        let wall_us = i64::try_from(wall_us).unwrap_or(i64::MAX);
        let ahead_of = |time| wall_us.saturating_sub(micros(time));
        Self {
            received,
            least: ahead_of(received),
            most: ahead_of(sent),
            is_of_this_run: true,
            forward: Duration::ZERO,
            back: Duration::ZERO,
        }
    }

    /// Takes what a later reading shows of the time between.
    fn compare(&mut self, later: &Self) {
        let slewed = slewed(self.time_to(later));
        let beyond = |us: i64| {
            let us = u64::try_from(us).unwrap_or(0);
            Duration::from_micros(us).saturating_sub(slewed)
        };
        let forward = beyond(later.least.saturating_sub(self.most));
        let back = beyond(self.least.saturating_sub(later.most));
        self.forward = self.forward.max(forward);
        self.back = self.back.max(back);
    }

    fn moved(&self) -> Duration {
        self.forward.max(self.back)
    }

    /// Whether it moved further than any lock allows.
    fn has_moved(&self) -> bool {
        self.moved() > least_drift()
    }

    /// Whether keys that were set at a later reading may be treated as if they were set at this
    /// one. Not across a step: the node would not become eligible in time.
    fn stands_for(&self, later: &Self) -> bool {
        self.moved() <= later.moved() * 2 + least_drift()
    }

    /// Whether it still says more than a later one.
    fn is_better_known_than(&self, later: &Self) -> bool {
        self.width() + 2 * slewed(self.time_to(later)) < later.width()
    }

    fn width(&self) -> Duration {
        Duration::from_micros(self.most.abs_diff(self.least))
    }

    fn time_to(&self, later: &Self) -> Duration {
        later.received.since(self.received)
    }
}

/// No lock allows less.
fn least_drift() -> Duration {
    Drift::of(Ttl::MIN_TTL).get()
}

/// How far two clocks may run apart in this time by being slewed: 500 ppm each.
fn slewed(time: Duration) -> Duration {
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

    /// A clock that shows so many milliseconds at these readings, each sent and received then.
    fn clock(readings: &[(u64, u64, u64)]) -> WallClock {
        let mut clock = WallClock::default();
        for (sent, received, wall) in readings {
            clock.observe(at(*sent), at(*received), wall * 1_000);
        }
        clock
    }

    fn stepped(clock: &mut WallClock, now: u64, longest: u64) -> Option<(bool, u64)> {
        let step = clock.stepped(at(now), ttl(longest))?;
        Some((step.is_forward, step.by.as_millis().try_into().unwrap()))
    }

    /// A lock of 10 s allows 102 ms, and one of 30 s 302 ms.
    #[test]
    fn a_step_is_a_move_beyond_drift_and_uncertainty() {
        // After 10 s the clocks may be 10 ms apart by being slewed.
        let mut clock = clock(&[(0, 10, 50_000), (10_000, 10_010, 60_122)]);
        assert_eq!(stepped(&mut clock, 10_010, 10), None, "112 - 10 is not above 102");
        let mut clock = self::clock(&[(0, 10, 50_000), (10_000, 10_010, 60_123)]);
        assert_eq!(stepped(&mut clock, 10_010, 10), Some((true, 103)));
        assert_eq!(stepped(&mut clock, 10_010, 30), None);
        let mut back = self::clock(&[(0, 10, 4_000_000), (1_000, 1_010, 401_000)]);
        assert_eq!(stepped(&mut back, 1_010, 30), Some((false, 3_599_989)));
    }

    #[test]
    fn a_step_is_over_when_every_earlier_key_has_expired() {
        let mut clock = clock(&[(0, 0, 50_000), (1_000, 1_000, 91_000)]);
        assert!(stepped(&mut clock, 1_000 + 10_101, 10).is_some());
        assert!(stepped(&mut clock, 1_000 + 10_102, 10).is_none());
        assert!(stepped(&mut clock, 1_000 + 10_102, 30).is_some());
    }

    /// This process was stopped between a request and its reply for 40 s.
    #[test]
    fn a_late_reading_is_no_step_and_hides_none() {
        let mut stopped =
            clock(&[(0, 0, 50_000), (1_000, 41_000, 51_000), (42_000, 42_000, 92_000)]);
        assert_eq!(stepped(&mut stopped, 42_000, 10), None);
        let mut read_late = clock(&[(0, 0, 50_000), (1_000, 41_000, 90_900)]);
        assert_eq!(stepped(&mut read_late, 41_000, 10), None);
        // The reading from before the stop says more, and is kept.
        let mut stepped_then =
            clock(&[(0, 0, 50_000), (1_000, 41_000, 51_000), (42_000, 42_000, 93_000)]);
        assert_eq!(stepped(&mut stepped_then, 42_000, 10), Some((true, 958)));
    }

    #[test]
    fn small_and_large_steps_do_not_hide_each_other() {
        let readings = [(0, 0, 50_000), (1_000, 1_000, 91_000), (11_000, 11_000, 101_150)];
        let mut clock = clock(&readings);
        assert_eq!(stepped(&mut clock, 11_001, 30), Some((true, 40_139)), "both, since 0");
        assert_eq!(stepped(&mut clock, 11_001, 10), Some((true, 140)), "since 1 s");
        assert_eq!(stepped(&mut clock, 1_000 + 30_302, 30), None);
        assert_eq!(stepped(&mut clock, 11_000 + 10_101, 10), Some((true, 140)));
        assert_eq!(stepped(&mut clock, 11_000 + 10_102, 10), None);
    }

    /// Whatever each of them is.
    #[test]
    fn small_steps_within_a_ttl_are_summed() {
        let steps =
            |by: u64| (0..=6).map(move |n| (n * 5_000, n * 5_000, 50_000 + n * (5_000 + by)));
        let mut clock = clock(&steps(50).collect::<Vec<_>>());
        // Six of 50 ms less 5 ms that it may be slewed by, in 30 s.
        assert_eq!(stepped(&mut clock, 30_000, 30), None);
        let mut clock = self::clock(&steps(60).collect::<Vec<_>>());
        assert_eq!(stepped(&mut clock, 30_000, 30), Some((true, 330)));
        // The last step is over when the keys of before it are.
        assert!(stepped(&mut clock, 35_301, 30).is_some());
        assert_eq!(stepped(&mut clock, 30_000 + 30_302, 30), None);
    }

    /// A clock that keeps running 2 % fast, though each reading is too close to the one before to
    /// show it.
    #[test]
    fn a_fast_clock_is_noticed_however_often_it_is_read() {
        for pause in [1, 7, 100, 1_000] {
            let fast = (0..120_000 / pause).map(|n| n * pause).map(|now| (now, now, now * 51 / 50));
            let mut clock = clock(&fast.collect::<Vec<_>>());
            let step = clock.stepped(at(120_000), ttl(30)).expect("302 ms in 16 s");
            assert!(step.is_forward && step.by < Duration::from_millis(1_000), "{step:?}");
            assert!(clock.readings.len() < 80, "{} readings", clock.readings.len());
            // A minute at the right rate: all keys of before are over.
            for now in (120_000..180_000).step_by(100) {
                clock.observe(at(now), at(now), (now + 2_400) * 1_000);
            }
            assert!(clock.stepped(at(180_000), ttl(30)).is_none(), "every {pause} ms");
        }
    }

    /// It runs 8 % fast, and then leaps.
    #[test]
    fn a_step_is_reported_once_and_again_when_it_grows() {
        let (mut clock, mut logged) = (WallClock::default(), Vec::new());
        for now in (0..60_000).step_by(10) {
            let step = if now < 50_000 { 0 } else { 40_000 };
            clock.observe(at(now), at(now), now * 1_080 + step * 1_000);
            let step = clock.stepped(at(now), ttl(30)).filter(|step| step.is_first);
            logged.extend(step.map(|step| (now, step.by.as_secs())));
        }
        assert_eq!(logged, [(3_830, 0), (50_000, 40)]);
    }

    /// It goes one way by 250 ms, and 2 s later the other way by 500 ms: what matters to a lock of
    /// 30 s is what it did since the time between, which is not forgotten as that grows old.
    #[test]
    fn a_step_that_begins_between_two_others_is_remembered() {
        for is_forward in [true, false] {
            let mut clock = WallClock::default();
            for now in (0..40_000).step_by(10) {
                let offset = match now {
                    0..10_000 => 1_250,
                    10_000..12_000 => 1_000,
                    _ => 1_500,
                };
                let offset = if is_forward { offset } else { 2_500 - offset };
                clock.observe(at(now), at(now), (now + offset) * 1_000);
            }
            let step = clock.stepped(at(40_000), ttl(30)).expect("499 ms are above 302");
            assert_eq!((step.is_forward, step.by.as_millis()), (is_forward, 499));
        }
    }

    /// Looks are merged as they grow old, and a step ends no later for that.
    #[test]
    fn a_step_is_over_in_time_among_many_readings() {
        let mut clock = WallClock::default();
        for now in (0..60_000).step_by(10) {
            let step = if now < 20_000 { 0 } else { 1_000 };
            clock.observe(at(now), at(now), (now + step) * 1_000);
        }
        assert_eq!(clock.stepped(at(50_301), ttl(30)).unwrap().seen, at(20_000));
        assert!(clock.stepped(at(50_302), ttl(30)).is_none());
    }

    #[test]
    fn readings_of_another_server_instance_are_not_compared() {
        let mut clock = clock(&[(0, 0, 50_000)]);
        clock.forget();
        clock.observe(at(1_000), at(1_000), 91_000_000);
        assert_eq!(stepped(&mut clock, 1_000, 10), None);
    }

    #[test]
    fn the_largest_reading_is_accepted() {
        let mut clock = WallClock::default();
        clock.observe(at(0), at(0), u64::MAX);
        clock.observe(at(1), Timestamp::MAX, 0);
        assert_eq!(clock.ahead_us(), Some(-i64::try_from(u64::MAX / 1_000).unwrap()));
    }
}
