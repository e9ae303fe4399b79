//! One word for each thing: those of GLOSSARY.md.

use super::{Finding, Source};

/// Words that the house does not use, with the one it does.
pub(super) fn banned(source: &Source) -> Vec<Finding> {
    let excused = PEERS.iter().any(|peers| source.path.contains(peers));
    if excused || !source.is(&["rs", "md", "lua"]) {
        return Vec::new();
    }
    let found = source.lines().flat_map(|(line, text)| {
        let text = text.to_lowercase();
        WORDS.iter().filter(move |(bad, _)| text.contains(bad)).map(move |word| (line, word))
    });
    found
        .map(|(line, (bad, good))| source.finding(line, format!("{bad:?}: say {good:?}")))
        .collect()
}

/// Files that define the words, or speak of other libraries in the words of those.
const PEERS: [&str; 5] = ["GLOSSARY.md", "COMPARISON.md", "MIGRATING.md", "peers", "interop/"];

const WORDS: [(&str, &str); 5] = [
    ("watchdog", "renewal"),  // tidy: allow
    ("unlock", "release"),    // tidy: allow
    ("refresh", "extend"),    // tidy: allow
    ("heartbeat", "renewal"), // tidy: allow
    ("zombie", "ghost"),      // tidy: allow
];

#[cfg(test)]
mod tests {
    use super::banned;
    use crate::tidy::testing::{lines, source};

    #[test]
    fn a_banned_word_is_found_in_any_case_and_form() {
        let text = "Fine.\nThe Watchdog.\nfn try_unlock_all()\n"; // tidy: allow
        for path in ["README.md", "a.rs", "a.lua"] {
            assert_eq!(lines(&banned(&source(path, text))), [2, 3], "{path}");
        }
        for path in ["GLOSSARY.md", "interop/a.md", "docs/peers.md", "a.toml"] {
            assert!(banned(&source(path, text)).is_empty(), "{path}");
        }
    }
}
