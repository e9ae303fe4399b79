//! The SQL of docs/fencing.md, taken out of the document and run.

use std::io::{self, Write as _};

use rusqlite::{Connection, ToSql};

use super::postgres::Postgres;

/// The statements of the document: the table, the first read's check, the write.
fn statements() -> [&'static str; 3] {
    let text = include_str!("../../../../../docs/fencing.md");
    let blocks = text.split("```sql\n").skip(1).filter_map(|block| block.split("```").next());
    blocks.collect::<Vec<_>>().try_into().expect("three blocks of SQL")
}

/// What a statement is run with, by the names in the document.
#[derive(Clone, Copy)]
struct Given {
    sku: &'static str,
    number: i64,
    holder: &'static str,
    left: i64,
}

const SKU: &str = "sku_1001";
const A: &str = "digest of a token";
const B: &str = "digest of another token";

/// The largest fencing number.
const MAX: i64 = (1 << 53) - 1;

/// Goes through the life of a resource. `run` says how many rows a statement changed, and `row`
/// returns the number, the holder and what is left.
fn fences(mut run: impl FnMut(&str, Given) -> usize, row: impl FnOnce() -> (i64, String, i64)) {
    let [table, show, write] = statements();
    for column in ["fence     BIGINT NOT NULL DEFAULT 0", "holder    TEXT NOT NULL DEFAULT ''"] {
        assert!(table.contains(column), "{table}");
    }
    let given = |number, holder, left| Given { sku: SKU, number, holder, left };
    assert_eq!(run(show, given(5, A, 0)), 1, "the first holder is admitted");
    assert_eq!(run(show, given(5, A, 0)), 1, "and again");
    assert_eq!(run(write, given(5, A, 99)), 1, "and writes");
    assert_eq!(run(show, given(4, B, 0)), 0, "a smaller number is refused");
    assert_eq!(run(write, given(4, B, 1)), 0, "a smaller number writes nothing");
    assert_eq!(run(show, given(5, B, 0)), 0, "an equal number of another holder is refused");
    assert_eq!(run(write, given(5, B, 2)), 0, "an equal number of another holder writes nothing");
    assert_eq!(run(show, given(6, B, 0)), 1, "the next holder is admitted before it reads");
    assert_eq!(run(write, given(5, A, 3)), 0, "from then on the earlier one writes nothing");
    assert_eq!(run(write, given(6, B, 98)), 1, "the next holder writes");
    assert_eq!(run(write, given(MAX, A, 97)), 1, "the largest number fits");
    assert_eq!(run(write, Given { sku: "none", ..given(MAX, A, 4) }), 0, "no row, no write");
    assert_eq!(row(), (MAX, A.to_owned(), 97));
}

const INSERT: &str = "INSERT INTO stock (sku, left_over) VALUES ('sku_1001', 100)";

#[test]
fn the_documented_sql_refuses_stale_holders_in_sqlite() {
    let database = Connection::open_in_memory().unwrap();
    database.execute_batch(statements()[0]).unwrap();
    database.execute(INSERT, []).unwrap();
    let run = |sql: &str, given: Given| {
        let Given { sku, number, holder, left } = &given;
        let values: [(&str, &dyn ToSql); 4] =
            [(":sku", sku), (":number", number), (":holder", holder), (":left", left)];
        // A name that a statement does not have is an error.
        let values: Vec<_> = values.into_iter().filter(|(name, _)| sql.contains(name)).collect();
        database.execute(sql, &*values).unwrap()
    };
    let row = || {
        let sql = "SELECT fence, holder, left_over FROM stock";
        database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
    };
    fences(run, row);
}

#[test]
fn the_documented_sql_refuses_stale_holders_in_postgresql() {
    let Some(server) = Postgres::start() else {
        // Not with a macro, whose output a test that passes does not show.
        let notice = "\n*** PostgreSQL is not installed: the SQL of docs/fencing.md was NOT run on \
                      it (apt-get install postgresql) ***\n";
        return io::stderr().write_all(notice.as_bytes()).unwrap();
    };
    server.run(statements()[0], &[]);
    server.run(INSERT, &[]);
    let run = |sql: &str, given: Given| {
        let Given { sku, number, holder, left } = given;
        let values = [
            format!("sku='{sku}'"),
            format!("number={number}"),
            format!("holder='{holder}'"),
            format!("left={left}"),
        ];
        let tag = server.run(sql, &values);
        tag.trim().strip_prefix("UPDATE ").expect("an update").parse().unwrap()
    };
    let row = || {
        let row = server.run("SELECT fence, holder, left_over FROM stock", &[]);
        let columns: Vec<_> = row.trim().split('|').collect();
        (columns[0].parse().unwrap(), columns[1].to_owned(), columns[2].parse().unwrap())
    };
    fences(run, row);
}
