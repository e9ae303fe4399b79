//! `cargo xtask tidy`: what compilers and lints do not check.
//!
//! Each check reads text, roughly: it knows no syntax but that of its own concern. A line of text
//! that must break a rule of words, phrases, names, places or length says so with the marker below.

mod crates;
mod docs;
mod floors;
mod leftovers;
mod lists;
mod names;
mod paths;
mod phrases;
mod promises;
mod shown;
mod size;
mod text;
mod types;
mod words;

use std::fmt;
use std::fs;
use std::process::Command;

use crate::command::{CommandFailure, root, run_quietly};

/// Runs all checks over the files that are, or could be, in the repository.
pub(crate) fn run() -> Result<(), CommandFailure> {
    let sources = sources()?;
    let findings = check(&sources);
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", sources.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err(CommandFailure::new("the house is not tidy")) }
}

fn check(sources: &[SourceFile]) -> Vec<Finding> {
    let one_file: [fn(&SourceFile) -> Vec<Finding>; 11] = [
        size::long_files,
        size::long_lines,
        size::long_functions,
        phrases::clumsy,
        leftovers::left_over,
        paths::of_this_machine,
        crates::wrong_way,
        floors::upward,
        docs::silent_about_cancellation,
        docs::lua_without_header,
        shown::elsewhere,
    ];
    let mut findings: Vec<Finding> =
        sources.iter().flat_map(|source| one_file.iter().flat_map(|check| check(source))).collect();
    let all_files =
        [promises::unproven, words::banned, names::dangling, lists::incomplete, types::of_one_name];
    findings.extend(all_files.iter().flat_map(|check| check(sources)));
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    findings
}

/// A text file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Relative to the root of the workspace.
    path: String,
    text: String,
}

impl SourceFile {
    fn is(&self, extensions: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, ext)| extensions.contains(&ext))
    }

    /// Lines that are not excused, counted from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines()).filter(|(_, line)| !line.contains(MARKER))
    }

    /// The same without items for tests. Each of these ends with `}` or `;` at the margin.
    fn lines_but_test_items(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut in_test = false;
        self.lines().filter(move |(_, text)| {
            let was_in_test = in_test;
            let ends = !text.starts_with(' ') && (text.ends_with('}') || text.ends_with(';'));
            in_test = text.starts_with("#[cfg(test)]") || in_test && !ends;
            !in_test && !was_in_test
        })
    }

    /// Lines that say that they break a rule on purpose.
    fn excused(&self) -> impl Iterator<Item = usize> {
        (1..).zip(self.text.lines()).filter(|(_, line)| line.contains(MARKER)).map(|(line, _)| line)
    }

    fn finding(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, what: what.into() }
    }
}

/// Something to tidy up.
#[derive(Debug)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

fn sources() -> Result<Vec<SourceFile>, CommandFailure> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let listed = run_quietly(&mut git)?;
    let paths = listed.split_terminator('\0');
    // What is no text, and what is listed but was removed, is passed over.
    let read = |path: &str| fs::read_to_string(root().join(path)).ok();
    Ok(paths
        .filter_map(|path| Some(SourceFile { path: path.to_owned(), text: read(path)? }))
        .collect())
}

/// Excuses the line it stands in.
const MARKER: &str = "tidy: allow";

#[cfg(test)]
mod testing {
    use super::{Finding, SourceFile};

    /// A file for a check to look at.
    pub(super) fn source(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    /// The lines in which something was found.
    pub(super) fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{lines, source};
    use super::{MARKER, check};

    #[test]
    fn findings_come_in_order_and_the_marker_excuses_a_line() {
        let long = "x".repeat(101);
        let text = format!("//! Doc.\n// {long}\n// {long} {MARKER}\n// {long}\n");
        let promise = source("SAFETY.md", "1. It holds: `proof`.\n");
        let proof = source("tests/a.rs", "fn proof() {}\n");
        let glossary = source("GLOSSARY.md", "| a | b |\n|---|---|\n| cat | feline |\n");
        let sources = [promise, source("b.rs", &text), proof, source("a.rs", &text), glossary];
        let findings = check(&sources);
        assert_eq!(lines(&findings), [2, 4, 2, 4]);
        assert_eq!(findings[0].to_string(), "a.rs:2: 104 columns, at most 100");
    }
}
