//! What all of them believed, and whether it can be true.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    path::Path,
    time::Duration,
};

/// One hold; times are nanoseconds on the clock that all share.
#[derive(Debug)]
struct Hold {
    /// The place of the process.
    place: usize,
    /// When it was called for.
    called: u64,
    from: u64,
    /// What was left of the lease then.
    left: u64,
    /// The end of the lease, as far as it is known.
    until: u64,
    /// When it was released, or known to be lost. Nobody says so who is killed.
    ended: u64,
}

impl Hold {
    /// Until when somebody believed in it.
    fn end(&self) -> u64 {
        self.until.min(self.ended)
    }

    /// It was over before its holder looked.
    fn is_empty(&self) -> bool {
        self.end() <= self.from
    }
}

/// What all processes believed.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The holds of each lock, by number.
    locks: BTreeMap<String, BTreeMap<u64, Hold>>,
    /// Which process stood still from when to when.
    stops: Vec<(usize, u64, u64)>,
    given_up: usize,
}

impl History {
    pub(crate) fn read(log: &Path) -> Self {
        Self::parse(&fs::read_to_string(log).unwrap())
    }

    fn parse(journal: &str) -> Self {
        let mut history = Self::default();
        for line in journal.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            let place = |at: usize| words[at].parse::<usize>().unwrap();
            match words[0] {
                "held" => {
                    let holds = history.locks.entry(words[1].to_owned()).or_default();
                    let Entry::Vacant(vacant) = holds.entry(number(2)) else {
                        panic!("two have one number: {line}");
                    };
                    vacant.insert(Hold {
                        place: place(3),
                        called: number(4),
                        from: number(5),
                        left: number(6).saturating_sub(number(5)),
                        until: number(6),
                        ended: u64::MAX,
                    });
                }
                "valid" => history.hold(words[1], number(2)).until = number(3),
                "ended" => history.hold(words[1], number(2)).ended = number(3),
                "stopped" => history.stops.push((place(1), number(2), number(3))),
                "given-up" => history.given_up += 1,
                _ => panic!("{line}"),
            }
        }
        history
    }

    fn hold(&mut self, lock: &str, number: u64) -> &mut Hold {
        self.locks.get_mut(lock).unwrap().get_mut(&number).unwrap()
    }

    /// Nobody believed that it held a lock which another held, and numbers grow.
    pub(crate) fn agrees(&self) {
        for (lock, holds) in &self.locks {
            nobody_overlaps(lock, holds);
            numbers_grow(lock, holds);
        }
    }

    /// Who acquires a lock has at least so much of it left, unless its process was stopped
    /// meanwhile.
    pub(crate) fn nobody_came_too_late(&self, least: Duration) {
        let holds = self.locks.values().flat_map(BTreeMap::values);
        for hold in holds.filter(|hold| Duration::from_nanos(hold.left) < least) {
            let stops = self.stops.iter().filter(|(place, ..)| *place == hold.place);
            let is_excused = { stops }.any(|(_, from, to)| *from < hold.from && *to > hold.called);
            assert!(is_excused, "it was acquired too late: {hold:?}");
        }
    }

    /// The number of the last hold of a lock.
    pub(crate) fn last_number(&self, lock: &str) -> u64 {
        self.locks.get(lock).and_then(|holds| holds.keys().last()).copied().unwrap_or(0)
    }

    pub(crate) fn holds(&self) -> usize {
        self.locks.values().map(BTreeMap::len).sum()
    }

    pub(crate) const fn given_up(&self) -> usize {
        self.given_up
    }

    /// The longest time from a call to the hold that came of it.
    pub(crate) fn longest_wait(&self) -> Duration {
        let holds = self.locks.values().flat_map(BTreeMap::values);
        Duration::from_nanos(holds.map(|hold| hold.from - hold.called).max().unwrap_or(0))
    }

    /// The longest time between two holds of one lock.
    pub(crate) fn longest_pause(&self) -> Duration {
        let pauses = self.locks.values().flat_map(|holds| {
            let holds: Vec<_> = holds.values().filter(|hold| !hold.is_empty()).collect();
            let pauses = holds.windows(2).map(|two| two[1].from.saturating_sub(two[0].end()));
            pauses.collect::<Vec<_>>()
        });
        Duration::from_nanos(pauses.max().unwrap_or(0))
    }
}

/// In the order of numbers, each hold begins when the one before is over.
fn nobody_overlaps(lock: &str, holds: &BTreeMap<u64, Hold>) {
    let believed: Vec<_> = holds.iter().filter(|(_, hold)| !hold.is_empty()).collect();
    for two in believed.windows(2) {
        let (before, after) = (two[0], two[1]);
        let (end, from) = (before.1.end(), after.1.from);
        assert!(end <= from, "{lock}: {before:?} overlaps {after:?} by {} ns", end - from);
    }
}

/// Also of holds that were over too soon to be believed in: their numbers were given out.
fn numbers_grow(lock: &str, holds: &BTreeMap<u64, Hold>) {
    let mut latest: Option<(&u64, &Hold)> = None;
    for hold in holds {
        // Of those with a smaller number, the one that was called for last.
        if let Some(other) = latest {
            let is_in_order = other.1.called <= hold.1.from;
            assert!(is_in_order, "{lock}: {other:?} came after {hold:?} was there");
        }
        if latest.is_none_or(|other| other.1.called < hold.1.called) {
            latest = Some(hold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "held k 7 0 10 20 90\nended k 7 50\n";

    fn agrees(journal: &str) {
        History::parse(&format!("{FIRST}{journal}")).agrees();
    }

    #[test]
    fn holders_one_after_the_other_pass() {
        agrees("held k 8 1 30 50 150\nvalid k 8 250\nended k 8 200\nheld k 9 0 10 200 300");
        agrees("held other 7 1 30 40 150");
    }

    #[test]
    #[should_panic(expected = "overlaps")]
    fn an_overlap_with_a_holder_is_found() {
        agrees("held k 8 1 30 49 150");
    }

    #[test]
    #[should_panic(expected = "overlaps")]
    fn an_overlap_with_the_lease_of_a_killed_holder_is_found() {
        agrees("held k 8 1 30 60 150\nvalid k 8 250\nheld k 9 0 200 240 400");
    }

    #[test]
    #[should_panic(expected = "two have one number")]
    fn a_duplicate_number_is_found() {
        agrees("held k 7 1 60 70 150");
    }

    #[test]
    #[should_panic(expected = "came after")]
    fn a_later_hold_with_a_smaller_number_is_found_even_if_it_had_ended() {
        agrees("held k 6 1 60 70 0");
    }

    fn is_in_time(journal: &str) {
        History::parse(journal).nobody_came_too_late(Duration::from_nanos(30));
    }

    #[test]
    fn a_late_hand_over_is_excused_by_a_stop() {
        is_in_time("held k 6 1 60 70 99\nstopped 1 65 68\nheld k 7 1 60 70 100");
    }

    #[test]
    #[should_panic(expected = "too late")]
    fn a_late_hand_over_is_found() {
        is_in_time("held k 6 1 60 70 99\nvalid k 6 200\nstopped 0 65 68");
    }

    #[test]
    #[should_panic(expected = "too late")]
    fn a_grant_after_its_end_is_found() {
        is_in_time("held k 6 1 60 70 0");
    }

    #[test]
    fn the_longest_wait_and_the_longest_pause() {
        let history = History::parse(&format!("{FIRST}held k 8 1 30 95 99\nheld o 1 0 1 5 9"));
        assert_eq!(history.longest_wait(), Duration::from_nanos(65));
        assert_eq!(history.longest_pause(), Duration::from_nanos(45));
    }
}
