//! What all clients of a cell did, put together afterwards by the fencing numbers.

use std::ops::Range;

/// One hold of one client; moments in nanoseconds of the clock that all processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) client: u32,
    pub(super) number: u64,
    /// Just before the lock was asked for.
    pub(super) asked: u64,
    /// Just after the guard was there.
    pub(super) acquired: u64,
    /// Just before the release was called.
    pub(super) released: u64,
}

/// What the holds of a window come to; times in microseconds.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Summary {
    pub(super) holds: u32,
    /// From the release to the next one's guard, where that one was waiting already.
    pub(super) handovers: Vec<f64>,
    pub(super) waits: Vec<f64>,
    /// The most holds of a client, and the fewest.
    pub(super) most: u32,
    pub(super) fewest: u32,
    /// Holds that began before the one with the next smaller number was given up. In the window
    /// or not.
    pub(super) overlaps: u32,
    /// Numbers that were given twice. In the window or not.
    pub(super) repeated: u32,
}

/// Puts the holds in the order of their numbers and counts those acquired in the window.
pub(super) fn summary(holds: &mut [Hold], clients: u32, window: &Range<u64>) -> Summary {
    holds.sort_by_key(|hold| hold.number);
    let mut summary = Summary::default();
    let mut shares = vec![0_u32; clients as usize];
    for hold in holds.iter().filter(|hold| window.contains(&hold.acquired)) {
        summary.holds += 1;
        summary.waits.push(micros(hold.acquired.saturating_sub(hold.asked)));
        if let Some(share) = shares.get_mut(hold.client as usize) {
            *share += 1;
        }
    }
    summary.most = shares.iter().copied().max().unwrap_or_default();
    summary.fewest = shares.iter().copied().min().unwrap_or_default();
    for pair in holds.windows(2) {
        let [hold, next] = pair else { continue };
        summary.repeated += u32::from(hold.number == next.number);
        summary.overlaps += u32::from(next.acquired < hold.released);
        let waited = next.asked < hold.released && hold.released <= next.acquired;
        if waited && window.contains(&next.acquired) {
            summary.handovers.push(micros(next.acquired - hold.released));
        }
    }
    summary
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(client: u32, number: u64, asked: u64, acquired: u64, released: u64) -> Hold {
        Hold { client, number, asked, acquired, released }
    }

    #[test]
    fn holds_are_matched_by_number_whatever_client_had_them() {
        let mut holds = [
            hold(0, 9, 3_500, 9_000, 9_500),
            hold(0, 1, 0, 1_000, 3_000),
            hold(1, 5, 500, 6_000, 8_000),
        ];
        let summary = summary(&mut holds, 2, &(1_000..10_000));
        assert_eq!(summary.handovers, [3.0, 1.0]);
        assert_eq!(summary.waits, [1.0, 5.5, 5.5]);
        assert_eq!((summary.holds, summary.most, summary.fewest), (3, 2, 1));
        assert_eq!((summary.overlaps, summary.repeated), (0, 0));
    }

    #[test]
    fn an_acquisition_of_a_free_lock_is_no_hand_over() {
        let mut holds = [hold(0, 1, 0, 1_000, 3_000), hold(1, 5, 4_000, 6_000, 8_000)];
        assert!(summary(&mut holds, 2, &(0..10_000)).handovers.is_empty());
    }

    #[test]
    fn outside_of_the_window_only_defects_count() {
        let mut holds = [hold(0, 1, 0, 1_000, 3_000), hold(1, 2, 0, 2_999, 3_500)];
        let found = summary(&mut holds, 3, &(5_000..10_000));
        assert_eq!(found, Summary { overlaps: 1, ..Summary::default() });
        holds[1].number = 1;
        holds[1].acquired = 3_000;
        let found = summary(&mut holds, 3, &(5_000..10_000));
        assert_eq!(found, Summary { repeated: 1, ..Summary::default() });
    }

    #[test]
    fn numbers_that_run_against_the_clock_are_an_overlap() {
        let mut holds = [hold(0, 2, 0, 1_000, 2_000), hold(1, 1, 0, 3_000, 4_000)];
        assert_eq!(summary(&mut holds, 2, &(0..1)).overlaps, 1);
    }
}
