//! What the documents must have in common with the command, and must not show.

use std::{collections::BTreeSet, fs, path::Path};

use crate::tool::Tenure;

#[test]
fn help_manual_and_document_have_the_same_exit_codes() {
    let of_help = |command| {
        let help = Tenure::to(command).args(["--help"]).run().code(0).silent().stdout;
        let (_, table) = help.split_once("Exit codes:").expect("a table");
        codes(table.lines().filter_map(|line| line.split_whitespace().next()))
    };
    let run = of_help("run");
    assert_eq!(run, BTreeSet::from([1, 64, 65, 69, 70, 71, 74, 75, 126, 127]));
    for command in ["acquire", "extend", "release", "status"] {
        assert_eq!(of_help(command), run, "{command}");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manual = fs::read_to_string(root.join("docs/man/tenure.1")).unwrap();
    let (_, table) = manual.split_once("Exit codes:").expect("a table");
    assert_eq!(codes(table.lines().filter_map(|line| line.split_whitespace().next())), run);
    let document = fs::read_to_string(root.join("docs/exit-codes.md")).unwrap();
    let (_, table) = document.split_once("| exit code |").expect("a table of exit codes");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    // The row of the command's own codes has no number but that of signals, and 0 is no failure.
    let cells = cells.filter(|cell| !cell.contains("128 +") && cell.trim() != "0");
    let documented = codes(cells.flat_map(|cell| cell.split([',', ' ', '`'])));
    assert_eq!(documented, run, "docs/exit-codes.md");
}

fn codes<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<u8> {
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The table that a resource keeps is read by more people than may release the lock.
#[test]
fn no_document_stores_a_token() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let documents = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let documents = documents.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let readmes = ["README.md", "README.zh-CN.md"].map(|name| root.join(name));
    for path in documents.chain(readmes) {
        let text = fs::read_to_string(&path).unwrap();
        let sql = text.split("```sql").skip(1).filter_map(|text| text.split("```").next());
        for statement in sql {
            let is_fenced = !statement.contains("UPDATE") || statement.contains("fence <");
            assert!(!statement.contains("token") && is_fenced, "{}", path.display());
        }
    }
}
