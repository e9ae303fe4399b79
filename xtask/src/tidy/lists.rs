//! Lists in documents that must be whole: dependencies, unsafe code, benchmarks.

use super::text::{code, quoted};
use super::{Finding, SourceFile};

/// Entries that a list lacks, and entries of the dependency table that are no dependency.
pub(super) fn incomplete(sources: &[SourceFile]) -> Vec<Finding> {
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    let mut findings = Vec::new();
    if let (Some(table), Some(manifest)) = (find(ARCHITECTURE), find("Cargo.toml")) {
        findings.extend(dependencies(table, manifest));
    }
    if let Some(list) = find(ARCHITECTURE) {
        findings.extend(sources.iter().filter_map(|source| unlisted_unsafe(source, list)));
    }
    if let Some(benches) = find("crates/bench/src/main.rs") {
        let lists = ["CONTRIBUTING.md", "xtask/src/main.rs"].into_iter().filter_map(find);
        findings.extend(lists.flat_map(|list| unlisted_benches(list, benches)));
    }
    findings
}

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Compares the first column of the table below "Dependencies" with the workspace's manifest.
fn dependencies(table: &SourceFile, manifest: &SourceFile) -> Vec<Finding> {
    let section = manifest.text.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let entries = section.lines().skip(1).take_while(|line| !line.starts_with('['));
    let ours = |line: &&str| !line.contains("path =");
    let used: Vec<&str> = entries.filter(ours).filter_map(|l| l.split([' ', '.']).next()).collect();
    let mut in_section = false;
    let mut heading = 1;
    let mut named = Vec::new();
    for (line, text) in table.lines() {
        if let Some(title) = text.strip_prefix("## ") {
            in_section = title.starts_with("Dependencies");
            heading = if in_section { line } else { heading };
        }
        let first = text.strip_prefix('|').and_then(|row| row.split('|').next());
        let first = first.filter(|_| in_section).unwrap_or_default();
        named.extend(first.split('`').skip(1).step_by(2).map(|name| (line, name)));
    }
    let lacks = |name: &&&str| !name.is_empty() && !named.iter().any(|(_, seen)| seen == *name);
    let lacking = used.iter().filter(lacks);
    let lacking = lacking.map(|name| table.finding(heading, format!("{name} is not in the table")));
    let unknown = named.iter().filter(|(_, name)| !used.contains(name));
    let what = |name: &str| format!("`{name}` is no dependency, nor is it a feature of one here");
    let unknown = unknown.map(|(line, name)| table.finding(*line, what(name)));
    lacking.chain(unknown).collect()
}

/// Files with unsafe code that the list does not name. Tests are free.
fn unlisted_unsafe(source: &SourceFile, list: &SourceFile) -> Option<Finding> {
    let in_crate = source.path.starts_with("crates/") && source.path.contains("/src/");
    let opens = |line: &str| code(line).contains(concat!("unsafe", " {"));
    let (line, _) = source.lines().find(|(_, line)| in_crate && opens(line))?;
    let listed = quoted(list).iter().any(|(_, name)| *name == source.path);
    let what = format!("unsafe code in a file that {ARCHITECTURE} does not name");
    (source.is(&["rs"]) && !listed).then(|| source.finding(line, what))
}

/// Benchmarks that a list of them lacks.
fn unlisted_benches(list: &SourceFile, benches: &SourceFile) -> Vec<Finding> {
    let names = benches.text.lines().filter(|line| line.contains("::run("));
    let names = names.filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    let words: Vec<&str> = list.text.split(|c: char| !c.is_alphanumeric()).collect();
    let lacking = names.filter(|name| !words.contains(name));
    lacking.map(|name| list.finding(1, format!("the benchmark {name} is not named"))).collect()
}

#[cfg(test)]
mod tests {
    use super::incomplete;
    use crate::tidy::testing::source;

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> = files.iter().map(|(path, text)| source(path, text)).collect();
        incomplete(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_dependency_table_is_the_manifests() {
        let manifest = "[workspace.dependencies]\nours = { path = \"a\" }\na = \"1\"\n\
            b = { version = \"2\" }\nc.version = \"1\"\n\n[profile.dev]\nd = 1\n";
        let table = "# A\n\n## Dependencies, and why\n\n| crate | for |\n|---|---|\n\
            | `a`, `b` (cli) | `x` |\n| `old` | y |\n\n## After\n\n| `d` | z |\n";
        assert_eq!(
            check(&[("ARCHITECTURE.md", table), ("Cargo.toml", manifest)]),
            [
                "ARCHITECTURE.md:3: c is not in the table",
                "ARCHITECTURE.md:8: `old` is no dependency, nor is it a feature of one here",
            ]
        );
        let table = table.replace("old", "c");
        assert!(check(&[("ARCHITECTURE.md", &table), ("Cargo.toml", manifest)]).is_empty());
    }

    #[test]
    fn unsafe_code_in_a_file_that_is_not_listed_is_found() {
        let code = concat!("fn a() {\n    unsafe", " { b() }\n}\n");
        let files = [
            ("ARCHITECTURE.md", "Unsafe: `crates/a/src/b.rs`."),
            ("crates/a/src/b.rs", code),
            ("crates/a/src/c.rs", code),
            ("crates/a/tests/d.rs", code),
            ("crates/a/src/e.rs", concat!("// unsafe", " {\n")),
        ];
        let what = "crates/a/src/c.rs:2: unsafe code in a file that ARCHITECTURE.md does not name";
        assert_eq!(check(&files), [what]);
    }

    #[test]
    fn a_benchmark_that_a_list_lacks_is_found() {
        let main = "        \"cycle\" => cycle::run(),\n        \"waiters\" => waiters::run(),\n\
            \"side\" => cycle::side(),\n";
        let files = [
            ("crates/bench/src/main.rs", main),
            ("CONTRIBUTING.md", "cycle, waiters"),
            ("xtask/src/main.rs", "cycle"),
        ];
        assert_eq!(check(&files), ["xtask/src/main.rs:1: the benchmark waiters is not named"]);
    }
}
