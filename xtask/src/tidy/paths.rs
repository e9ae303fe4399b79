//! Nothing that is true on one machine only.

use super::{Finding, SourceFile};

/// Paths below directories in which somebody works.
pub(super) fn of_this_machine(source: &SourceFile) -> Vec<Finding> {
    let found = source.lines().filter(|(_, text)| HOMES.iter().any(|home| begins_in(text, home)));
    found.map(|(line, _)| source.finding(line, "a path of one machine")).collect()
}

/// Whether a path begins with `home`, rather than having it somewhere within.
fn begins_in(text: &str, home: &str) -> bool {
    text.match_indices(home).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !(c.is_alphanumeric() || "._-/}*".contains(c)))
    })
}

/// In two parts each, so that this file is clean.
const HOMES: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];

#[cfg(test)]
mod tests {
    use super::{HOMES, of_this_machine};
    use crate::tidy::testing::{lines, source};

    #[test]
    fn a_path_of_this_machine_is_found() {
        for home in HOMES {
            let text = format!("a{home}b is fine\nopen(\"{home}b\")\n{home}\n");
            for path in ["a.rs", "a.md", "Makefile"] {
                assert_eq!(lines(&of_this_machine(&source(path, &text))), [2, 3]);
            }
        }
    }
}
