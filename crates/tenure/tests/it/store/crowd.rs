//! Many processes, one lock.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
};

use tenure_testkit::scale;

use super::{Store, connect, given};
use crate::{
    program::{self, Program},
    secs,
};

const PROCESSES: usize = 8;

/// Each hold adds one to a number in a file, and its fencing number to a list.
#[test]
fn a_counter_protected_only_by_the_store_is_exact() {
    let store = Store::new();
    let directory = store.directory.path();
    fs::write(directory.join(COUNTER), "0").unwrap();
    let holds = scale(250, 2_000);
    let settings = [("DIR", directory.display().to_string()), ("HOLDS", holds.to_string())];
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let start = || store.start("add in the store", &settings);
    let mut programs: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    for program in &mut programs {
        assert_eq!(program.hear(), "ready");
    }
    programs.iter_mut().for_each(|program| program.tell("go"));
    programs.into_iter().for_each(Program::end_well);

    let count = fs::read_to_string(directory.join(COUNTER)).unwrap();
    assert_eq!(count, (PROCESSES * holds).to_string(), "an update was lost");
    let numbers = fs::read_to_string(directory.join(NUMBERS)).unwrap();
    let numbers: Vec<u64> = numbers.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers.len(), PROCESSES * holds);
    assert!(numbers.is_sorted_by(|earlier, later| earlier < later), "a number did not grow");
    let left = store.lock("crowd").inspect().unwrap().held;
    assert!(left.is_none(), "nobody is left inside: {left:?}");
    assert!(store.is_sound());
}

/// One of the processes.
pub(super) fn add() {
    // Longer than the whole test: nobody comes in because a lease has ended.
    let lock = connect(&given()).lock("crowd").ttl(secs(3_600));
    let directory = PathBuf::from(program::setting("DIR"));
    let counter = directory.join(COUNTER);
    let mut numbers = OpenOptions::new();
    let mut numbers = numbers.create(true).append(true).open(directory.join(NUMBERS)).unwrap();
    let holds: usize = program::setting("HOLDS").parse().unwrap();
    program::say("ready");
    program::heed();
    for _ in 0..holds {
        let guard = lock.acquire().unwrap();
        let count: u64 = fs::read_to_string(&counter).unwrap().parse().unwrap();
        fs::write(&counter, (count + 1).to_string()).unwrap();
        writeln!(numbers, "{}", guard.fencing_token()).unwrap();
        guard.release().expect("held to the end");
    }
}

const COUNTER: &str = "counter";
const NUMBERS: &str = "numbers";
