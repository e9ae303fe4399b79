//! When a command under a lease gets SIGTERM, and when it is killed.

use std::time::Duration;

use tenure::LossReason;

use crate::system::Moment;

/// The times of a command under a lease: arithmetic alone.
#[derive(Debug)]
pub(super) struct Schedule {
    /// How long the command has between SIGTERM and SIGKILL.
    grace: Duration,
    /// The end of the lease, as it was when it was looked at last.
    lease_end: Moment,
}

/// What to do about a lease that is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Nothing before that moment.
    CheckAt(Moment),
    /// The command gets SIGTERM now, and is killed at that moment.
    EndBy(Moment),
}

impl Schedule {
    pub(super) fn new(grace: Duration, now: Moment) -> Self {
        Self { grace, lease_end: now }
    }

    /// What to do when the lease is valid for this long yet.
    pub(super) fn step(&mut self, now: Moment, left: Duration) -> NextStep {
        self.lease_end = now + left;
        let notice = self.grace + RESERVE;
        if left <= notice {
            NextStep::EndBy((self.lease_end - RESERVE).max(now))
        } else {
            NextStep::CheckAt(now + (left - notice))
        }
    }

    /// When the command is killed after a loss: never later than before the end of the lease.
    ///
    /// A lease that ran out had its notice by [`Schedule::step`], unless this process was stopped
    /// meanwhile. Then there is no time left, even if the last look was at a longer lease.
    pub(super) fn after_loss(&self, reason: &LossReason, now: Moment) -> Moment {
        match reason {
            LossReason::Gone
            | LossReason::Taken { .. }
            | LossReason::MaxHold
            | LossReason::EngineStopped => {
                (now + self.grace).min(self.lease_end - RESERVE).max(now)
            }
            _ => now,
        }
    }

    /// When the command is killed after a SIGTERM of outer tools; `None` without one.
    ///
    /// Each level of tools ends what is below it so much earlier that it can release its own lock
    /// before the level above kills it.
    pub(super) fn before_outer(deadlines: &[(u32, Moment)], now: Moment) -> Option<Moment> {
        let kill_at = |(levels, outer): &(u32, Moment)| {
            let left =
                (0..*levels).fold(outer.since(now), |left, _| left - (left / 4).min(MAX_RELEASE));
            now + left
        };
        deadlines.iter().map(kill_at).min()
    }
}

/// The command is killed this long before its lease can end: a busy machine delivers late.
pub(crate) const RESERVE: Duration = Duration::from_millis(100);

/// The release of a lock that takes longer is not confirmed.
const MAX_RELEASE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    fn at(ms: u64) -> Moment {
        Moment::since_start(Duration::from_millis(ms))
    }

    /// At 100 s with a lease up to 120 s.
    fn schedule() -> Schedule {
        let mut schedule = Schedule::new(GRACE, at(100_000));
        let step = schedule.step(at(100_000), Duration::from_secs(20));
        assert_eq!(step, NextStep::CheckAt(at(114_900)));
        schedule
    }

    fn losses() -> [LossReason; 4] {
        let holder = tenure::Holder::from_value(b"somebody");
        [
            LossReason::Gone,
            LossReason::MaxHold,
            LossReason::Taken { holder },
            LossReason::EngineStopped,
        ]
    }

    #[test]
    fn a_command_is_signalled_early_enough_for_its_grace() {
        let mut schedule = schedule();
        let step = schedule.step(at(114_900), Duration::from_millis(5_100));
        assert_eq!(step, NextStep::EndBy(at(119_900)));
        // Later looks find less left; the kill does not move.
        assert_eq!(
            schedule.step(at(118_000), Duration::from_secs(2)),
            NextStep::EndBy(at(119_900))
        );
        let step = schedule.step(at(119_950), Duration::from_millis(50));
        assert_eq!(step, NextStep::EndBy(at(119_950)), "there is no time left");
    }

    #[test]
    fn after_a_loss_the_grace_is_given_while_the_lease_lasts() {
        for reason in losses() {
            assert_eq!(schedule().after_loss(&reason, at(110_000)), at(115_000), "{reason}");
        }
    }

    #[test]
    fn after_any_loss_the_kill_is_before_the_end_of_the_lease() {
        for reason in losses() {
            assert_eq!(schedule().after_loss(&reason, at(117_000)), at(119_900), "{reason}");
            assert_eq!(schedule().after_loss(&reason, at(130_000)), at(130_000), "{reason}");
        }
    }

    #[test]
    fn after_a_lease_that_ran_out_in_a_pause_there_is_no_grace() {
        let now = at(116_000);
        let pause = Duration::from_secs(9);
        for reason in [LossReason::Expired, LossReason::Paused { pause }] {
            assert_eq!(schedule().after_loss(&reason, now), now);
        }
    }

    #[test]
    fn each_level_ends_its_command_early_enough_for_its_release() {
        let now = at(100_000);
        for (deadlines, kill_at) in [
            (&[(1, at(104_000))][..], Some(at(103_000))),
            (&[(2, at(120_000))], Some(at(116_000))),
            (&[(2, at(104_000))], Some(at(102_250))),
            (&[(1, at(140_000))], Some(at(138_000))),
            (&[(1, at(103_000)), (2, at(104_000))], Some(at(102_250))),
            (&[(1, at(90_000))], Some(now)),
            (&[], None),
        ] {
            assert_eq!(Schedule::before_outer(deadlines, now), kill_at, "{deadlines:?}");
        }
    }
}
