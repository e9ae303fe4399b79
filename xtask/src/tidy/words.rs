//! One word for each thing: those of GLOSSARY.md.

use super::text::parts;
use super::{Finding, SourceFile};

/// Words that the last column of the glossary's table names, with the term to use in their place.
///
/// A word is looked for in code, comments and prose, in any case and with the usual endings. One in
/// backticks is a name: it is looked for as it is written, in Rust code.
pub(super) fn banned(sources: &[SourceFile]) -> Vec<Finding> {
    let Some(glossary) = sources.iter().find(|source| source.path == GLOSSARY) else {
        let path = GLOSSARY.to_owned();
        return vec![Finding { path, line: 1, what: "there is no such file".into() }];
    };
    let words = words(&glossary.text);
    if words.is_empty() {
        return vec![glossary.finding(1, "the last column of its table names no word")];
    }
    let read = sources.iter().filter(|source| source.is(&["rs", "md", "lua", "toml", "sh", "1"]));
    let read = read.filter(|source| !EXCUSED.iter().any(|path| source.path.starts_with(path)));
    read.flat_map(|source| in_one(source, &words)).collect()
}

/// The glossary defines the words; the others tell of libraries that use them.
const EXCUSED: [&str; 3] = [GLOSSARY, "docs/from-go", "docs/origins.md"];

pub(super) const GLOSSARY: &str = "GLOSSARY.md";

fn in_one(source: &SourceFile, words: &[Banned]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in source.lines() {
        let of_line = parts(text);
        for word in words {
            let found = match &word.bad {
                Bad::Everywhere(bad) => of_line.windows(bad.len()).any(|seen| are(seen, bad)),
                Bad::Name(name) => source.is(&["rs"]) && has_name(text, name),
            };
            if found {
                let what = format!("{:?}: say {:?}", word.bad.text(), word.term);
                findings.push(source.finding(line, what));
            }
        }
    }
    findings
}

/// Whether these are the words, the last of them with an ending or without.
fn are(seen: &[String], bad: &[String]) -> bool {
    let Some((last, first)) = bad.split_last() else { return false };
    seen.starts_with(first) && seen.last().is_some_and(|seen| is(seen, last))
}

fn is(seen: &str, bad: &str) -> bool {
    // "Released" is "release" with a "d"; "holding" is "hold" with an "ing".
    let stem = bad.strip_suffix('e').unwrap_or(bad);
    let ending = seen.strip_prefix(bad).or_else(|| seen.strip_prefix(stem));
    seen == bad || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

const ENDINGS: [&str; 7] = ["s", "es", "d", "ed", "ing", "er", "ers"];

fn has_name(text: &str, name: &str) -> bool {
    let is_in_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(|letter| !is_in_name(letter)).any(|seen| seen == name)
}

/// A word that is not used, and the term that is.
#[derive(Debug, PartialEq, Eq)]
struct Banned {
    bad: Bad,
    term: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Bad {
    Everywhere(Vec<String>),
    Name(String),
}

impl Bad {
    fn text(&self) -> String {
        match self {
            Self::Everywhere(words) => words.join(" "),
            Self::Name(name) => name.clone(),
        }
    }
}

/// The entries of the last column, split at commas.
fn words(glossary: &str) -> Vec<Banned> {
    let rows = glossary.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.flat_map(|row| {
        let mut cells = row.trim().trim_matches('|').split('|').map(str::trim);
        let term = cells.next().unwrap_or_default().to_owned();
        let entries = cells.next_back().unwrap_or_default().split(',').map(str::trim);
        let entries = entries.filter(|entry| !["", "–", "-"].contains(entry));
        let banned = |entry: &str| {
            let bad = match entry.strip_prefix('`') {
                Some(name) => Bad::Name(name.trim_end_matches('`').to_owned()),
                None => Bad::Everywhere(parts(entry)),
            };
            Banned { bad, term: term.clone() }
        };
        entries.map(banned).collect::<Vec<_>>()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::banned;
    use crate::tidy::testing::{lines, source};

    const TABLE: &str = "# Glossary\n\n| term | meaning | not |\n|---|---|---|\n\
        | renewal | in the background | guard dog, free up, `Try` |\n| key | of a lock | – |\n";

    fn check(path: &str, text: &str) -> Vec<usize> {
        lines(&banned(&[source("GLOSSARY.md", TABLE), source(path, text)]))
    }

    #[test]
    fn a_word_of_the_last_column_is_found_in_any_case_and_form() {
        let text = "Fine.\nThe Guard dogs.\nfn guardDog_all()\nThe guard. Dog.\nIt frees up.\n\
            Freeing up.\nfree_up!\nguarddog, unguard dog\n";
        for path in ["README.md", "a.rs", "a.lua", "Cargo.toml"] {
            assert_eq!(check(path, text), [2, 3, 4, 7], "{path}");
        }
        for path in ["docs/from-go.md", "docs/origins.md", "a.png"] {
            assert!(check(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_word_with_its_endings_is_found_and_one_that_contains_it_is_not() {
        let table = "| a | b |\n|---|---|\n| extend | stretch, cache, goblin |\n";
        let text = "stretches\nstretching\ncaching\ncached\nstretchment\ngoblins\ncachet\n";
        let found = banned(&[source("GLOSSARY.md", table), source("a.md", text)]);
        assert_eq!(lines(&found), [1, 2, 3, 4, 6]);
        assert_eq!(found[0].to_string(), "a.md:1: \"stretch\": say \"extend\"");
    }

    #[test]
    fn a_name_in_backticks_is_found_in_code_as_it_is_written() {
        let text = "enum How { Try }\n// Try it.\nTryAgain, retry, try\n";
        assert_eq!(check("a.rs", text), [1, 2]);
        assert!(check("a.md", text).is_empty());
    }

    #[test]
    fn a_marked_line_and_the_rows_of_the_glossary_are_excused() {
        assert!(check("a.md", "guard dog <!-- tidy: allow -->\n").is_empty()); // tidy: allow
    }

    #[test]
    fn a_glossary_without_words_is_found() {
        assert_eq!(lines(&banned(&[source("GLOSSARY.md", "# Glossary\n")])), [1]);
        assert_eq!(lines(&banned(&[])), [1]);
    }
}
