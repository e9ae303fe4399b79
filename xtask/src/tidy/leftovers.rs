//! Nothing unfinished.

use super::{Finding, SourceFile};

/// Notes to oneself, debugging aids and tests that are switched off.
pub(super) fn left_over(source: &SourceFile) -> Vec<Finding> {
    let found = source.lines().flat_map(|(line, text)| {
        LEFTOVERS.iter().filter(|left| text.contains(**left)).map(move |left| (line, left))
    });
    found.map(|(line, left)| source.finding(line, format!("{left:?} is left over"))).collect()
}

/// In two parts each, so that this file is clean.
const LEFTOVERS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("dbg", "!("),
    concat!("unimplemented", "!("),
    concat!("#[", "ignore"),
];

#[cfg(test)]
mod tests {
    use super::{LEFTOVERS, left_over};
    use crate::tidy::testing::{lines, source};

    #[test]
    fn each_leftover_is_found() {
        for left in LEFTOVERS {
            let text = format!("fine\n    {left}\n");
            assert_eq!(lines(&left_over(&source("a.rs", &text))), [2], "{left}");
        }
        assert!(
            left_over(&source("Cargo.toml", "todo = \"deny\"\ndbg_macro = \"deny\"\n")).is_empty()
        );
    }
}
