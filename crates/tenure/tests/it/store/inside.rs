//! A program that is inside its transaction for as long as its test wants.

use rusqlite::{Connection, params};
use tenure::{AcquireError, FencingToken};

use super::{Store, connect, given, seal};
use crate::program::{self, Program};

/// How far the transaction has come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Depth {
    /// It has begun, and readers may still read.
    Begun,
    /// Half of it is in the file, whose former bytes are in the journal; nobody may even read.
    HalfWritten,
}

impl Depth {
    pub(super) const ALL: [Self; 2] = [Self::Begun, Self::HalfWritten];
}

impl Store {
    /// Starts the program, and waits until it is inside.
    pub(super) fn start_inside(&self, depth: Depth) -> Program {
        let mut program =
            self.start("stay inside a transaction", &[("DEPTH", &format!("{depth:?}"))]);
        assert_eq!(program.hear(), "inside");
        program
    }
}

/// The program: commits at the first request, and ends at the second.
///
/// What it changes would be seen: at the key `k` a number far ahead and another token, and rows of
/// nobody's.
pub(super) fn stay_inside() {
    let mut sql = Connection::open(given()).unwrap();
    sql.execute_batch("PRAGMA synchronous=OFF; PRAGMA journal_mode=PERSIST; PRAGMA cache_size=1")
        .unwrap();
    let transaction =
        sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let change =
        "UPDATE locks SET token = x'00', number = number + 1000000000000 WHERE key = x'6b'";
    assert_eq!(transaction.execute(change, []).unwrap(), 1, "the row of k is there");
    seal::row(&transaction, b"k");
    if program::setting("DEPTH") == format!("{:?}", Depth::HalfWritten) {
        // More than its cache of one page can hold.
        for row in 0..100_u32 {
            let key = [MARK.as_bytes(), &row.to_be_bytes()].concat();
            let row = params![key, vec![0_u8; 2_000]];
            let insert = "INSERT INTO locks VALUES (?1, NULL, NULL, ?2, 0, 0, 1, 0, 0, 0)";
            transaction.execute(insert, row).unwrap();
        }
    }
    program::say("inside");
    if program::heed() == "commit" {
        transaction.commit().unwrap();
        program::say("committed");
        program::heed();
    }
}

/// How far ahead of all others the program's number is.
pub(super) const AHEAD: u64 = 1_000_000_000_000;

/// What its rows' keys begin with.
pub(super) const MARK: &str = "written by halves";

/// Takes a number from a store in which the program's change is not to be seen.
pub(super) fn number_after(store: &Store, before: FencingToken) -> FencingToken {
    let guard = store.lock("k").try_acquire().unwrap().expect("nobody holds it");
    let number = guard.fencing_token();
    assert!(number > before, "{number} after {before}");
    assert!(number.get() < before.get() + AHEAD, "{number} is the number of a half");
    guard.release().unwrap();
    number
}

/// A program that tries to take a lock, and says what came of it.
pub(super) fn try_once() {
    program::say(&match connect(&given()).lock("k").try_acquire() {
        Ok(guard) => format!("granted: {}", guard.is_some()),
        Err(AcquireError::NoQuorum(error)) => format!("{:?}", error.failed[0].kind()),
        Err(error) => panic!("{error}"),
    });
    program::heed();
}

/// Reproduces: a second client of a process looks at the file, closes it, and with that gives up
/// the lock that the first one's transaction has: so POSIX has it.
#[test]
fn a_client_that_opens_the_store_leaves_the_transactions_of_its_process_alone() {
    let store = Store::new();
    store.lock("k").acquire().unwrap().release().unwrap();
    let mut sql = store.sql();
    let transaction =
        sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let kind = super::indeterminate(store.lock("other").try_acquire()).kind();
    assert!(super::stopped::is_held_up(kind), "{kind:?}");
    let mut other = store.start("try once in the store", &[]);
    let heard = other.hear();
    assert!(["Busy", "TimedOut"].contains(&&*heard), "came into a transaction: {heard}");
    transaction.rollback().unwrap();
}
