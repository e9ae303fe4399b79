//! The direction of dependencies between crates.

use super::{Finding, SourceFile};

/// Dependencies on crates of this workspace that a crate may not have. Those of tests are free.
pub(super) fn wrong_way(source: &SourceFile) -> Vec<Finding> {
    let Some(crate_dir) = source.path.strip_suffix("/Cargo.toml") else { return Vec::new() };
    let known = MAY_USE.iter().find(|(dir, _)| *dir == crate_dir);
    let mut section = "";
    let mut findings = Vec::new();
    for (line, text) in source.lines() {
        if let Some(header) = text.trim().strip_prefix('[') {
            section = header.trim_end_matches(']');
        }
        // Also "target.….dependencies" and "build-dependencies", and "dependencies.NAME".
        let of_tests = section.contains("dev-dependencies");
        let in_table = section.ends_with("dependencies");
        let named = section.rsplit_once("dependencies.").map(|(_, name)| name);
        let header = text.trim_start().starts_with('[');
        let name = match named {
            Some(name) if header => name,
            None if in_table && !header => text.split(['.', '=', ' ']).next().unwrap_or_default(),
            _ => continue,
        };
        let ours = name == "tenure" || name.starts_with("tenure-");
        let allowed = known.is_some_and(|(_, may)| may.contains(&name));
        if ours && !of_tests && !allowed {
            findings.push(source.finding(line, format!("{crate_dir} must not depend on {name}")));
        }
    }
    findings
}

/// A crate that is not listed may use none.
const MAY_USE: [(&str, &[&str]); 5] = [
    ("crates/tenure", &["tenure-core"]),
    ("crates/cli", &["tenure"]),
    ("crates/sim", &["tenure-core"]),
    ("crates/bench", &["tenure", "tenure-core", "tenure-testkit"]),
    ("xtask", &["tenure-testkit"]),
];

#[cfg(test)]
mod tests {
    use super::wrong_way;
    use crate::tidy::testing::{lines, source};

    #[test]
    fn a_dependency_upwards_is_found() {
        let text = "[package]\nname = \"tenure-core\"\n[dependencies]\ntenure.workspace = true\n\
            [dev-dependencies]\ntenure-testkit = { workspace = true }\n\
            [target.'cfg(unix)'.dependencies]\ntenure-cli = \"1\"\n[dependencies.tenure-sim]\n";
        assert_eq!(lines(&wrong_way(&source("crates/core/Cargo.toml", text))), [4, 8, 9]);
    }

    #[test]
    fn a_dependency_downwards_is_fine_and_the_testkit_only_for_tests() {
        let text = "[dependencies]\ntenure-core = { workspace = true }\ntenure-testkit = \"1\"\n";
        assert_eq!(lines(&wrong_way(&source("crates/tenure/Cargo.toml", text))), [3]);
        assert!(wrong_way(&source("Cargo.toml", text)).is_empty());
    }
}
