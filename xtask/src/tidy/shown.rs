//! One place says what of others' text may be shown: `tenure_core::Shown`.

use super::{Finding, SourceFile};

/// Other ways to make text of bytes, or to show what cannot be seen, in what users run. Paths in
/// errors are cleaned where those errors go behind another.
pub(super) fn elsewhere(source: &SourceFile) -> Vec<Finding> {
    let is_run = CRATES.iter().any(|path| source.path.starts_with(path));
    if !is_run || EXCUSED.iter().any(|name| source.path.ends_with(name)) {
        return Vec::new();
    }
    let found = source.lines_but_test_items().flat_map(|(line, text)| {
        WAYS.iter().filter(move |way| text.contains(**way)).map(move |way| (line, way))
    });
    found.map(|(line, way)| source.finding(line, format!("{way:?}: show it by `Shown`"))).collect()
}

const CRATES: [&str; 3] = ["crates/core/src/", "crates/tenure/src/", "crates/cli/src/"];

/// The place itself, and tests in files of their own.
const EXCUSED: [&str; 3] = ["/shown.rs", "/tests.rs", "/fuzz.rs"];

const WAYS: [&str; 7] = [
    ".escape_ascii()",
    ".escape_debug()",
    ".escape_default()",
    ".escape_unicode()",
    ".is_control()",
    "from_utf8_lossy(",
    ".to_string_lossy()",
];

#[cfg(test)]
mod tests {
    use super::elsewhere;
    use crate::tidy::testing::{lines, source};

    #[test]
    fn another_way_to_show_text_is_found_in_what_users_run() {
        let text = "let a = key.escape_ascii();\nlet b = 1;\nlet c = path.to_string_lossy();\n\
            #[cfg(test)]\nlet d = key.escape_ascii();\nlet e = key.escape_ascii();\n";
        assert_eq!(lines(&elsewhere(&source("crates/cli/src/a.rs", text))), [1, 3, 6]);
        for path in ["crates/core/src/shown.rs", "crates/cli/tests/it/a.rs", "xtask/src/a.rs"] {
            assert!(elsewhere(&source(path, text)).is_empty(), "{path}");
        }
    }
}
