//! Plain English: phrases that a reader stumbles over.

use super::text::{Word, prose};
use super::{Finding, SourceFile};

/// Phrases of the list below in documents, comments and messages.
pub(super) fn clumsy(source: &SourceFile) -> Vec<Finding> {
    if EXCUSED.iter().any(|path| source.path.starts_with(path)) {
        return Vec::new();
    }
    let words = prose(source);
    let mut findings = Vec::new();
    for start in 0..words.len() {
        for (phrase, say) in PHRASES {
            let rest = words.get(start..).unwrap_or_default();
            if begins_with(rest, phrase) {
                let line = rest.first().map_or(1, |word| word.line);
                findings.push(source.finding(line, format!("{phrase:?}: {say}")));
            }
        }
    }
    findings
}

/// The list itself.
const EXCUSED: [&str; 1] = ["xtask/src/tidy/phrases.rs"];

/// Whether a text begins with a phrase. In a phrase `a|b` is either word, `_` any word, and `!a`
/// any text that does not go on with that word.
fn begins_with(text: &[Word], phrase: &str) -> bool {
    let mut text = text.iter().map(|word| word.text.as_str());
    phrase.split(' ').all(|wanted| match wanted.strip_prefix('!') {
        Some(unwanted) => !unwanted.split('|').any(|word| text.clone().next() == Some(word)),
        None => text.next().is_some_and(|word| {
            !word.is_empty() && (wanted == "_" || wanted.split('|').any(|wanted| wanted == word))
        }),
    })
}

/// A phrase, and what to write.
const PHRASES: [(&str, &str); 26] = [
    ("whoever", "name the subject: a caller, a client, a user"),
    ("who wait|waits|asks|hears|joins|comes|tries|listens", "name them: a waiter, a caller"),
    ("those|all who", "name them: waiters, callers, users"),
    ("one|those|any that hang|hangs|waits|wait|lives|live|asks|ask", "repeat the noun"),
    ("such a one", "repeat the noun"),
    ("told", "report, notify, log, print, say"),
    ("untold", "unknown, indeterminate"),
    ("hear|hears|heard|hearing", "receive, be notified, learn"),
    ("cannot|could tell !which|the|them|apart", "could not determine"),
    ("could not tell !which|the|them|apart", "could not determine"),
    ("give|gives|given|gave|giving back", "release"),
    ("gives|giving it|everything back", "release"),
    ("taken|takes up", "resume"),
    ("stands in a|the|line", "is in the queue"),
    ("for good", "permanently"),
    ("for ever", "forever, without end"),
    ("by and by", "gradually, over time"),
    ("no more !than", "no longer, not any more"),
    ("anew", "again"),
    ("in vain", "without success"),
    ("with no regard", "regardless of"),
    ("all the same", "still, nevertheless"),
    ("goes its own way", "say what it does"),
    ("is|are awaited", "say who waits for it"),
    ("is|was|are|were|be|been had", "hold, get, acquire"),
    ("has|have|had others|it|them|him|her wait|end|ask|look|stop", "make the thing the subject"),
];

#[cfg(test)]
mod tests {
    use super::{PHRASES, clumsy};
    use crate::tidy::testing::{lines, source};

    /// The plainest text of a phrase.
    fn example(phrase: &str) -> String {
        let words = phrase.split(' ').filter(|word| !word.starts_with('!'));
        let first = |word: &str| word.split('|').next().unwrap_or_default().to_owned();
        words.map(first).collect::<Vec<_>>().join(" ").replace('_', "it")
    }

    #[test]
    fn each_phrase_is_found_in_documents_comments_and_messages() {
        for (phrase, _) in PHRASES {
            let bad = example(phrase);
            assert_eq!(lines(&clumsy(&source("a.md", &format!("Fine.\n{bad}\n")))), [2], "{bad}");
            let rust = format!("/// Fine.\n/// And {bad}.\nf(\"{bad} {{x}}\");\n");
            assert_eq!(lines(&clumsy(&source("a.rs", &rust))), [2, 3], "{bad}");
            assert_eq!(lines(&clumsy(&source("a.lua", &format!("-- It {bad}\n")))), [1], "{bad}");
        }
    }

    #[test]
    fn a_phrase_is_found_across_lines_and_not_across_sentences() {
        assert_eq!(lines(&clumsy(&source("a.rs", "// It ends for\n// good.\n"))), [1]);
        assert!(clumsy(&source("a.rs", "// What it is for. Good.\n")).is_empty());
        assert!(clumsy(&source("a.md", "A test for `x` good\n")).is_empty());
    }

    #[test]
    fn good_english_names_in_code_and_marked_lines_are_left_alone() {
        for text in ["no more than two", "it cannot tell them apart", "`told`"] {
            assert!(clumsy(&source("a.md", text)).is_empty(), "{text}");
        }
        assert!(clumsy(&source("a.rs", "fn told(anew: u8) {} // fine\n")).is_empty());
        assert!(clumsy(&source("a.md", "anew <!-- tidy: allow -->\n")).is_empty()); // tidy: allow
    }
}
