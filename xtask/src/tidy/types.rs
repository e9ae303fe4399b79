//! One type, one name, in the whole workspace.

use std::collections::BTreeMap;

use super::{Finding, SourceFile};

/// Types of the workspace that have the name of another. The blocking API has twins of the
/// async one, and other systems have twins of what Linux offers.
pub(super) fn of_one_name(sources: &[SourceFile]) -> Vec<Finding> {
    let candidates = sources.iter().filter(|source| {
        let path = source.path.as_str();
        CRATES.iter().any(|start| path.starts_with(start))
            && !TWINS.iter().any(|twin| path.contains(twin))
            && source.is(&["rs"])
            && !is_test(source)
    });
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in candidates {
        let code = source.lines_but_test_items();
        for (line, name) in code.filter_map(|(line, text)| Some((line, type_in(text)?))) {
            if let Some(other) = first.get(name).filter(|other| **other != source.path) {
                let what = format!("another type in {other} is called {name:?}, too");
                findings.push(source.finding(line, what));
            } else {
                first.insert(name, &source.path);
            }
        }
    }
    findings
}

/// Whether a file has tests only.
fn is_test(source: &SourceFile) -> bool {
    source.text.contains("#[test]") && !source.text.contains("#[cfg(test)]")
}

/// The type that a line declares. An alias within an `impl` is none of its own.
fn type_in(text: &str) -> Option<&str> {
    let item = text.trim_start();
    let item = match item.strip_prefix("pub") {
        Some(after) => after.split_once(' ')?.1,
        None => item,
    };
    let (kind, name) = item.split_once(' ')?;
    let is_alias = kind == "type" && !text.starts_with(' ');
    let is_type = ["struct", "enum", "trait", "union"].contains(&kind) || is_alias;
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    name.get(..end).filter(|name| is_type && !name.is_empty())
}

const CRATES: [&str; 7] = [
    "crates/core/src/",
    "crates/tenure/src/",
    "crates/cli/src/",
    "crates/sim/src/",
    "crates/bench/src/",
    "crates/testkit/src/",
    "xtask/src/",
];

const TWINS: [&str; 2] = ["/blocking/", "/elsewhere.rs"];

#[cfg(test)]
mod tests {
    use super::of_one_name;
    use crate::tidy::testing::{lines, source};

    #[test]
    fn a_type_with_the_name_of_another_is_found() {
        let one = "pub struct Lease {\n}\nimpl A for Lease {\n    type Error = B;\n}\n";
        let two = "    pub(crate) enum Lease<'a> {\ntype Lease = u8;\nstruct Leases(u8);\n\
            #[cfg(test)]\nstruct Lease;\n";
        let three = "#[cfg(test)]\nmod random;\nstruct Lease;\n\
            #[cfg(test)]\nmod tests {\n    struct Lease;\n}\nenum Lease {}\n";
        let files = [
            source("crates/core/src/lease.rs", one),
            source("crates/tenure/src/guard.rs", two),
            source("crates/tenure/src/blocking/mod.rs", one),
            source("crates/cli/src/system/elsewhere.rs", one),
            source("crates/sim/src/lease.rs", one),
            source("crates/sim/tests/it/lease.rs", one),
            source("crates/testkit/src/lease.rs", three),
            source("crates/core/src/lease/tests.rs", "struct Lease;\n#[test]\nfn a() {}\n"),
        ];
        let found = of_one_name(&files);
        assert_eq!(lines(&found), [1, 2, 1, 3, 8]);
        assert!(found[0].to_string().starts_with("crates/tenure/src/guard.rs:1: another type in"));
    }
}
