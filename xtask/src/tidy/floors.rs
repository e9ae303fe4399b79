//! The direction of dependencies between the floors of crates/tenure.

use super::{Finding, SourceFile};

/// Paths of a higher floor that begin with `crate::`, in code. What the crate's root exports again
/// goes unseen under its short name.
pub(super) fn upward(source: &SourceFile) -> Vec<Finding> {
    let Some(floor) = floor_of(&source.path) else { return Vec::new() };
    let higher = FLOORS.get(..floor).unwrap_or_default();
    let code: Vec<&str> = source.text.lines().map(without_comment).collect();
    let code = code.join("\n");
    let mut findings = Vec::new();
    for (at, root) in code.match_indices("crate::") {
        let line = code.get(..at).unwrap_or_default().matches('\n').count() + 1;
        let after = code.get(at + root.len()..).unwrap_or_default();
        for name in first_names(after).iter().filter(|name| higher.contains(name)) {
            findings.push(source.finding(line, format!("looks up to the floor {name:?}")));
        }
    }
    findings
}

fn floor_of(path: &str) -> Option<usize> {
    let within = path.strip_prefix("crates/tenure/src/")?;
    let name = within.split(['/', '.']).next()?;
    FLOORS.iter().position(|floor| *floor == name)
}

fn without_comment(line: &str) -> &str {
    line.find("//").and_then(|at| line.get(..at)).unwrap_or(line)
}

/// The names right below the root: one, or those at the first level of a group in braces.
fn first_names(path: &str) -> Vec<&str> {
    let name_end = |text: &str| text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let name = |text: &'_ str| name_end(text).unwrap_or(text.len());
    let Some(group) = path.strip_prefix('{') else {
        return vec![path.get(..name(path)).unwrap_or_default()];
    };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut expects_name = true;
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expects_name = true,
            _ if depth == 0 && expects_name && !letter.is_whitespace() => {
                let rest = group.get(at..).unwrap_or_default();
                names.push(rest.get(..name(rest)).unwrap_or_default());
                expects_name = false;
            }
            _ => {}
        }
    }
    names
}

/// From the top down; what is not listed stands beside them. The core is a crate of its own.
const FLOORS: [&str; 6] = ["blocking", "client", "lock", "guard", "engine", "node"];

#[cfg(test)]
mod tests {
    use super::upward;
    use crate::tidy::testing::{lines, source};

    #[test]
    fn an_upward_path_is_found_in_every_form() {
        let text = "//! [`crate::client`].\nuse crate::client::Client;\nuse crate::node::Node;\n\
            use crate::{\n    clock::{self, client},\n    lock::Lock,\n};\n\
            fn f() { crate::blocking::f() } // crate::guard\n";
        for path in ["crates/tenure/src/engine/acquire.rs", "crates/tenure/src/engine.rs"] {
            assert_eq!(lines(&upward(&source(path, text))), [2, 4, 8], "{path}");
        }
    }

    #[test]
    fn the_same_floor_lower_ones_and_those_beside_are_fine() {
        let text = "use crate::lock::A;\nuse crate::{node::B, error::C};\nuse crate::clients::D;\n";
        assert!(upward(&source("crates/tenure/src/lock/mod.rs", text)).is_empty());
        let text = "use crate::client::Client;\n";
        assert!(upward(&source("crates/tenure/src/view.rs", text)).is_empty());
        assert!(upward(&source("crates/cli/src/lock.rs", text)).is_empty());
    }
}
