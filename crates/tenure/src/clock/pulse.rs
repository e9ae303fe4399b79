//! Whether a thread ran when it was to run.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tenure_core::{Pause, Timestamp};

/// When the engine's thread is to run next, and its last pause. Other threads may look: after a
/// stop of the whole process they may run first.
#[derive(Debug)]
pub(crate) struct Pulse(Mutex<Beats>);

#[derive(Debug)]
struct Beats {
    due: Timestamp,
    pause: Option<Pause>,
}

impl Default for Pulse {
    fn default() -> Self {
        Self(Mutex::new(Beats { due: Timestamp::MAX, pause: None }))
    }
}

impl Pulse {
    /// The thread is to run then, and not before.
    pub(super) fn plan(&self, due: Timestamp) {
        self.beats().due = due;
    }

    /// The thread runs.
    pub(super) fn beat(&self, now: Timestamp) {
        let mut beats = self.beats();
        beats.pause = pause(beats.due, now).or(beats.pause);
        beats.due = Timestamp::MAX;
    }

    /// The last pause, up to now if it goes on.
    pub(crate) fn last_pause(&self, now: Timestamp) -> Option<Pause> {
        let beats = self.beats();
        pause(beats.due, now).or(beats.pause)
    }

    fn beats(&self) -> MutexGuard<'_, Beats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pause(from: Timestamp, to: Timestamp) -> Option<Pause> {
    (to.since(from) >= MIN_PAUSE).then_some(Pause { from, to })
}

/// Less is the delay of any timer on a busy machine.
const MIN_PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_thread_that_runs_late_has_paused() {
        let pulse = Pulse::default();
        assert_eq!(pulse.last_pause(at(1_000)), None, "nothing was planned");
        pulse.plan(at(2_000));
        assert_eq!(pulse.last_pause(at(2_019)), None);
        let so_far = Pause { from: at(2_000), to: at(3_000) };
        assert_eq!(pulse.last_pause(at(3_000)), Some(so_far), "another thread looks");
        pulse.beat(at(4_000));
        let pause = Some(Pause { from: at(2_000), to: at(4_000) });
        assert_eq!(pulse.last_pause(at(9_000)), pause);
        pulse.plan(at(10_000));
        pulse.beat(at(10_001));
        assert_eq!(pulse.last_pause(at(10_001)), pause, "the last one that there was");
    }
}
