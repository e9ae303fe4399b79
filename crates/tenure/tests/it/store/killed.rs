//! Processes that are killed.

use std::{fs, path::Path, thread, time::Duration};

use rustix::process::Signal;
use tenure_testkit::{eventually, scale};

use super::{
    Store, connect, given,
    inside::{Depth, MARK, number_after},
};
use crate::{
    LIMIT, ms,
    program::{self, Program},
};

/// What is left of a transaction is rolled back by the next client, whether it had the store
/// open or not.
#[test]
fn a_process_killed_inside_its_transaction_leaves_no_partial_write() {
    for depth in Depth::ALL {
        let store = Store::new();
        let earlier = store.lock("k");
        let guard = earlier.acquire().unwrap();
        let before = guard.fencing_token();
        guard.release().unwrap();
        let program = store.start_inside(depth);
        // Nobody in this process is in a transaction: the file may be read as it is.
        let bytes = fs::read(store.file()).unwrap();
        let written = bytes.windows(MARK.len()).any(|bytes| bytes == MARK.as_bytes());
        assert_eq!(written, matches!(depth, Depth::HalfWritten), "{depth:?}");
        program.signal(Signal::KILL);
        drop(program);

        let after = number_after(&store, before);
        let guard = earlier.try_acquire().unwrap().expect("nobody holds it");
        assert!(guard.fencing_token() > after);
        guard.release().unwrap();
        let rows: i64 = store
            .sql()
            .query_row("SELECT count(*) FROM locks WHERE key <> x''", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 1, "{depth:?}: others' rows are there");
        assert!(store.is_sound(), "{depth:?}");
    }
}

/// Short: a killed holder's lease is waited for in every round.
const TTL: Duration = ms(300);

/// Three programs take and release one lock, and one after the other is killed.
#[test]
fn a_process_killed_at_any_moment_delays_others_only_until_its_lease_ends() {
    let store = Store::new();
    let start = || store.start("come and go in the store", &[("TTL_MS", "300")]);
    let mut programs: Vec<_> = (0..3).map(|_| start()).collect();
    programs.iter_mut().for_each(|program| drop(program.hear()));
    let lock = store.lock("k").ttl(TTL);
    let mut last = 0;
    for round in 0..scale(20, 200) {
        // Nothing is waited for: what varies is the moment.
        thread::sleep(Duration::from_micros((round as u64 * 379) % 3_000));
        let victim = programs.remove(0);
        victim.signal(Signal::KILL);
        drop(victim);
        let guard = lock.acquire_within(LIMIT).expect("its lease ends");
        let number = guard.fencing_token().get();
        assert!(number > last, "{number} after {last}");
        last = number;
        guard.release().unwrap();
        for other in &mut programs {
            until_past(other, number);
        }
        programs.push(start());
        programs.last_mut().map(Program::hear).expect("there are three");
    }
    drop(programs);
    eventually(LIMIT, "the last lease ends", || lock.inspect().unwrap().held.is_none());
    assert!(store.is_sound());
}

/// Waits until the program has been given a larger number.
pub(super) fn until_past(program: &mut Program, number: u64) {
    while program.hear().parse::<u64>().unwrap() <= number {}
}

/// The program: takes and releases the lock until it is killed, and says each number once it is
/// done with it.
pub(super) fn come_and_go() {
    let file = given();
    let ttl = ms(program::setting("TTL_MS").parse().unwrap());
    let lock = connect(&file).lock("k").ttl(ttl);
    let resource = file.with_extension("resource");
    loop {
        let guard = lock.acquire_within(LIMIT).unwrap();
        let number = guard.fencing_token().get();
        let last = fs::read_to_string(&resource).unwrap_or_default();
        let last: u64 = last.parse().unwrap_or_default();
        // One that was kept from the processor for longer than its lease has no say.
        if guard.ensure_held().is_ok() {
            assert!(number > last, "{number} after {last}");
            write_whole(&resource, number);
        }
        drop(guard.release());
        program::say(&number.to_string());
    }
}

/// In one step, since the writer may be killed.
fn write_whole(resource: &Path, number: u64) {
    let new = resource.with_extension(std::process::id().to_string());
    fs::write(&new, number.to_string()).unwrap();
    fs::rename(new, resource).unwrap();
}
