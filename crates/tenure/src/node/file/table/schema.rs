//! The tables, and how a store of ours is known.

use rusqlite::{Transaction, types::FromSql};

use super::{Fault, chain::Chain};

/// Makes the tables in a file that is empty, and checks that any other is a store of this layout.
///
/// # Errors
///
/// [`Fault::NotOurs`] for the database of another program, and for another layout.
pub(super) fn prepare(transaction: &Transaction<'_>) -> Result<(), Fault> {
    let program: i64 = ask(transaction, "PRAGMA application_id")?;
    let version: i64 = ask(transaction, "PRAGMA user_version")?;
    let has_tables: bool = ask(transaction, "SELECT EXISTS (SELECT * FROM sqlite_master)")?;
    match (program, version, has_tables) {
        (PROGRAM, VERSION, _) => Ok(()),
        (0, 0, false) => {
            transaction.execute_batch(TABLES)?;
            Chain(transaction).begin()?;
            transaction.pragma_update(None, "application_id", PROGRAM)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            Ok(())
        }
        (PROGRAM, ..) => Err(other_version(version)),
        (0, 1, true) if is_first_layout(transaction)? => Err(other_version(version)),
        _ => Err(Fault::NotOurs("it is the database of another program".into())),
    }
}

/// The first layout had no name for its program.
fn is_first_layout(transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) = 2 FROM sqlite_master WHERE name IN ('locks', 'queue')";
    ask(transaction, sql)
}

fn other_version(version: i64) -> Fault {
    Fault::NotOurs(format!(
        "the store has version {version}, and this program knows version {VERSION}: end all \
         programs that use the store, and remove it"
    ))
}

fn ask<T: FromSql>(transaction: &Transaction<'_>, sql: &str) -> rusqlite::Result<T> {
    transaction.query_row(sql, [], |row| row.get(0))
}

/// "tenu", in the file's header.
const PROGRAM: i64 = 0x7465_6e75;

const VERSION: i64 = 2;

/// What is stored. The index is for the sweep.
const TABLES: &str = "\
CREATE TABLE locks (
    key BLOB PRIMARY KEY,
    next BLOB,
    boot TEXT,
    token BLOB,
    token_ends_ms INTEGER NOT NULL,
    life_ms INTEGER NOT NULL,
    number INTEGER,
    number_ends_ms INTEGER NOT NULL,
    queue_ends_ms INTEGER NOT NULL,
    sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX ends ON locks (boot, max(token_ends_ms, number_ends_ms, queue_ends_ms));
CREATE TABLE queue (
    key BLOB,
    score INTEGER,
    member BLOB,
    sum INTEGER NOT NULL,
    PRIMARY KEY (key, score, member)
) WITHOUT ROWID";
