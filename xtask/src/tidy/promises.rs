//! Every promise has a test.

use std::collections::BTreeSet;

use super::{Finding, SourceFile};

/// Promises of SAFETY.md that name no test, or none that exists.
pub(super) fn unproven(sources: &[SourceFile]) -> Vec<Finding> {
    let Some(safety) = sources.iter().find(|source| source.path == "SAFETY.md") else {
        let path = "SAFETY.md".to_owned();
        return vec![Finding { path, line: 1, what: "there is no such file".into() }];
    };
    let functions = functions(sources);
    let promises = promises(&safety.text);
    if promises.is_empty() {
        return vec![safety.finding(1, "there is no numbered promise")];
    }
    let proven = |text: &str| names(text).any(|name| functions.contains(name));
    let unproven = promises.iter().filter(|(_, text)| !proven(text));
    unproven.map(|(line, _)| safety.finding(*line, "names no test that exists")).collect()
}

/// Items of lists and rows of tables that start with a number such as `3.` or `S3`, with the
/// lines that belong to them.
fn promises(text: &str) -> Vec<(usize, String)> {
    let mut promises: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (line, text) in (1..).zip(text.lines()) {
        if is_numbered(text) {
            promises.push((line, text.to_owned()));
            open = true;
        } else if text.starts_with(' ') && open {
            if let Some((_, promise)) = promises.last_mut() {
                promise.push_str(text);
            }
        } else {
            open = false;
        }
    }
    promises
}

fn is_numbered(line: &str) -> bool {
    let is_item = line.starts_with(|c: char| "|-*".contains(c) || c.is_ascii_alphanumeric());
    let text = line.trim_start_matches(|c: char| "|-*".contains(c) || c.is_whitespace());
    let digits = text.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or(text);
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    // A sentence may begin with a number too: in a list or table, something ends the number.
    let bare = line.starts_with(|c: char| c.is_ascii_alphanumeric());
    let ended = if bare { rest.starts_with('.') } else { !rest.starts_with(char::is_alphanumeric) };
    is_item && rest.len() < digits.len() && ended
}

/// Names in backticks, without the modules before them.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.map(|path| path.rsplit("::").next().unwrap_or(path).trim_end_matches("()"))
}

/// Names of all functions in the tree.
fn functions(sources: &[SourceFile]) -> BTreeSet<&str> {
    let rust = sources.iter().filter(|source| source.is(&["rs"]));
    let after_fn = rust.flat_map(|source| source.text.split("fn ").skip(1));
    after_fn
        .filter_map(|text| {
            let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
            let is_function = text.get(end..)?.starts_with(['(', '<']);
            is_function.then(|| text.get(..end)).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::unproven;
    use crate::tidy::testing::{lines, source};

    const TESTS: &str = "#[test]\nfn it_holds() {}\nfn also<T>() {}\nlet fn_name = 1;\n";

    fn check(safety: &str) -> Vec<usize> {
        lines(&unproven(&[source("SAFETY.md", safety), source("tests/a.rs", TESTS)]))
    }

    #[test]
    fn a_promise_without_a_test_is_found() {
        let text = "# Promises\n\n1. Holds: `it_holds`.\n2. Holds too: `it_hold`.\n3. Trust us.\n\n\
            | S4 | rows | `tests::also()` |\n| S5 | rows | `Lock` |\n|----|------|---|\n\
            - **P6** — list, see\n  `it_holds`\n- **P7** — list\n\nIn `it_holds`.\n";
        assert_eq!(check(text), [4, 5, 8, 12]);
    }

    #[test]
    fn a_file_without_promises_proves_nothing() {
        assert_eq!(check("2026 was a year.\n\n- no number\n"), [1]);
        assert_eq!(lines(&unproven(&[])), [1]);
    }
}
