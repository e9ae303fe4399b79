//! The one table of exit codes, wherever it stands.

use std::{collections::BTreeSet, fs, path::Path};

use crate::tool::Tenure;

#[test]
fn help_manual_and_readme_have_the_same_exit_codes() {
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
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, section) = readme.split_once("## The command").expect("the section");
    let section = section.split("\n## ").next().expect("the section");
    let (_, table) = section.split_once("| exit code |").expect("a table of exit codes");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    // The row of the command's own codes has no number but that of signals.
    let cells = cells.filter(|cell| !cell.contains("128 +"));
    assert_eq!(codes(cells.flat_map(|cell| cell.split([',', ' ', '`']))), run, "README.md");
}

fn codes<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<u8> {
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The table that a resource keeps is read by more people than may release the lock.
#[test]
fn no_document_stores_a_token() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in ["README.md", "README.zh-CN.md", "docs/from-go.md", "docs/from-go.zh-CN.md"] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let sql = text.split("```sql").skip(1).filter_map(|text| text.split("```").next());
        for statement in sql {
            assert!(!statement.contains("token") && statement.contains("fence <="), "{file}");
        }
    }
}
