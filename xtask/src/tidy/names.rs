//! Names that texts refer to exist: documents, files, and names in the code.

use std::collections::BTreeSet;

use super::size::without_text;
use super::text::{code, quoted};
use super::words::GLOSSARY;
use super::{Finding, SourceFile};

/// Links, paths and names in documents and comments that lead nowhere.
pub(super) fn dangling(sources: &[SourceFile]) -> Vec<Finding> {
    let known = KnownNames::of(sources);
    let read = sources.iter().filter(|source| source.is(&["md", "rs", "lua"]));
    let read = read.filter(|source| !EXCUSED.iter().any(|path| source.path.starts_with(path)));
    read.flat_map(|source| {
        let mut findings = dangling_links(source, sources, &known);
        let drawn = drawn_paths(source);
        for (line, text) in quoted(source).into_iter().chain(drawn) {
            if is_to_avoid(source, line, text) {
                continue;
            }
            let what = match refers_to(text) {
                Some(Reference::Path) if !known.has_path(&source.path, text) => "no such file",
                Some(Reference::Name) if !known.has_name(text) => "no such name in the code",
                _ => continue,
            };
            findings.push(source.finding(line, format!("`{text}`: there is {what}")));
        }
        findings
    })
    .collect()
}

/// Whether the glossary names it as one that the code must not have.
fn is_to_avoid(source: &SourceFile, line: usize, name: &str) -> bool {
    let row = source.text.lines().nth(line - 1);
    let row = row.filter(|row| source.path == GLOSSARY && row.starts_with('|'));
    let cell = row.and_then(|row| row.trim_end_matches(['|', ' ']).rsplit('|').next());
    cell.is_some_and(|cell| cell.contains(&format!("`{name}`")))
}

/// They explain the calls of other libraries.
const EXCUSED: [&str; 1] = ["docs/from-go"];

/// Paths in drawings: in blocks of Markdown that are in no language.
fn drawn_paths(source: &SourceFile) -> Vec<(usize, &str)> {
    let mut drawn = Vec::new();
    let mut fence = None;
    for (line, text) in source.lines().filter(|_| source.is(&["md"])) {
        if let Some(language) = text.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
        } else if fence == Some("") {
            let words = text.split_whitespace().map(|word| word.trim_end_matches(','));
            let paths = words.filter(|word| refers_to(word) == Some(Reference::Path));
            drawn.extend(paths.map(|path| (line, path)));
        }
    }
    drawn
}

/// Links of Markdown to files and headings of the repository.
fn dangling_links(
    source: &SourceFile,
    sources: &[SourceFile],
    known: &KnownNames<'_>,
) -> Vec<Finding> {
    if !source.is(&["md"]) {
        return Vec::new();
    }
    let links = source.lines().flat_map(|(line, text)| {
        let targets = text.split("](").skip(1).filter_map(|after| after.split_once(')'));
        targets.map(move |(target, _)| (line, target))
    });
    let local = links.filter(|(_, target)| !target.contains("://"));
    let dangling = local.filter(|(_, target)| {
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { source.path.clone() } else { beside(&source.path, path) };
        let document = || sources.iter().find(|source| source.path == path);
        let has_heading = || document().is_some_and(|source| has_heading(&source.text, heading));
        !known.is_path(&path) || !heading.is_empty() && !has_heading()
    });
    dangling.map(|(line, target)| source.finding(line, format!("the link to {target:?}"))).collect()
}

/// A path from the directory of a file.
fn beside(from: &str, path: &str) -> String {
    let mut steps: Vec<&str> = from.split('/').collect();
    steps.pop();
    for step in path.trim_end_matches('/').split('/') {
        match step {
            "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.join("/")
}

/// Whether a document has a heading with this anchor, as GitHub makes them.
fn has_heading(document: &str, anchor: &str) -> bool {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let mut anchors = headings.map(|line| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    });
    anchors.any(|found| found == anchor)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reference {
    Path,
    Name,
}

/// What a text in backticks refers to, if it has the form of something of the repository's.
fn refers_to(text: &str) -> Option<Reference> {
    let extension = text.rsplit_once('.').map(|(_, extension)| extension);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    let in_tree = ROOTS.iter().any(|root| text.starts_with(root));
    let is_file = extension.is_some_and(|extension| EXTENSIONS.contains(&extension));
    if text.chars().all(plain) && (in_tree || is_file) && !text.starts_with(['/', '.']) {
        return Some(Reference::Path);
    }
    let name = text.trim_end_matches("()");
    let segments: Vec<&str> = name.split("::").collect();
    let is_name = |segment: &&str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic())
            && segment.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let foreign = segments.first().is_some_and(|first| FOREIGN.contains(first));
    let of_code = segments.len() > 1 || name.contains('_') || has_hump(name) || name != text;
    (segments.iter().all(is_name) && of_code && !foreign).then_some(Reference::Name)
}

/// Whether a name begins with a capital and has small letters too, as types do.
fn has_hump(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|c| c.is_ascii_uppercase())
        && letters.any(|c| c.is_ascii_lowercase())
}

const ROOTS: [&str; 5] = ["crates/", "docs/", "xtask/", "fuzz/", "tests/"];

const EXTENSIONS: [&str; 4] = ["rs", "md", "lua", "sh"];

/// Crates of others, and names that are theirs or the system's.
const FOREIGN: [&str; 11] = [
    "std",
    "core",
    "tokio",
    "redis",
    "libc",
    "smol",
    "CLOCK_BOOTTIME",
    "MultiplexedConnection",
    "CARGO_TARGET_DIR",
    "Bidi_Control",
    "Default_Ignorable_Code_Point",
];

/// What there is to refer to.
struct KnownNames<'a> {
    files: BTreeSet<&'a str>,
    directories: BTreeSet<&'a str>,
    /// Words of the code: names that are defined or used there, and parts of its strings.
    words: BTreeSet<&'a str>,
    /// Names of items, fields and variants, or what begins a line of code as those do.
    declared: BTreeSet<String>,
}

impl<'a> KnownNames<'a> {
    fn of(sources: &'a [SourceFile]) -> Self {
        let files: BTreeSet<&str> = sources.iter().map(|source| source.path.as_str()).collect();
        let directories = files.iter().flat_map(|path| {
            path.match_indices('/').filter_map(|(at, _)| path.get(..at)).collect::<Vec<_>>()
        });
        let directories = directories.collect();
        let code_of = |source: &'a SourceFile| source.text.lines().map(code);
        let lines = sources.iter().filter(|source| source.is(&CODE)).flat_map(code_of);
        let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = lines.flat_map(|line| line.split(move |c| !is_in_word(c))).collect();
        let rust = sources.iter().filter(|source| source.is(&["rs"]));
        let declared = rust.flat_map(|source| source.text.lines().filter_map(declared_in));
        Self { files, directories, words, declared: declared.collect() }
    }

    fn is_path(&self, path: &str) -> bool {
        self.files.contains(path) || self.directories.contains(path)
    }

    /// Whether a file or directory is called so: from the root, from `from`, or by its last steps.
    fn has_path(&self, from: &str, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let mut all = self.files.iter().chain(&self.directories);
        if let Some((before, after)) = path.split_once('*') {
            return all.any(|known| known.contains(before) && known.ends_with(after));
        }
        let last = format!("/{path}");
        self.is_path(path) || self.is_path(&beside(from, path)) || all.any(|k| k.ends_with(&last))
    }

    /// Whether the code has this name; the last one of a path must be declared somewhere.
    fn has_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches("()");
        let declared = |(_, last): (&str, &str)| self.declared.contains(last);
        name.split("::").all(|segment| self.words.contains(segment))
            && name.rsplit_once("::").is_none_or(declared)
    }
}

/// The name that a line of Rust declares, if it declares one.
fn declared_in(line: &str) -> Option<String> {
    let line = without_text(line);
    let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = line.split(|c| !is_in_name(c)).filter(|word| !word.is_empty());
    let bare = line.trim_start().trim_start_matches("pub ");
    let first = words.clone().find(|word| *word != "pub").filter(|first| bare.starts_with(first));
    let mut after = words.find(|word| DECLARE.contains(word)).and_then(|_| words.next());
    while after.is_some_and(|word| DECLARE.contains(&word)) {
        after = words.next();
    }
    after.or(first).map(str::to_owned)
}

/// What comes before a declared name.
const DECLARE: [&str; 10] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "async", "unsafe"];

/// Where names are looked for.
const CODE: [&str; 5] = ["rs", "lua", "toml", "sh", "py"];

#[cfg(test)]
mod tests {
    use super::dangling;
    use crate::tidy::testing::{lines, source};

    fn check(path: &str, text: &str) -> Vec<usize> {
        let code = "mod lock;\nstruct Lock {\n    pub key: u8,\n}\nconst fn take_it() {}\n// Gone\n\
            let a = \"A_B\";\n";
        let sources = [
            source(path, text),
            source("crates/tenure/src/lock.rs", code),
            source("docs/more.md", "# More\n\n## How it ends, at last\n"),
        ];
        lines(&dangling(&sources))
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let text = "[a](docs/more.md) [b](docs/less.md)\n[a](docs/more.md#how-it-ends-at-last)\n\
            [a](docs/more.md#how-it-begins)\n[a](https://example.org/a)\n# Here\n[a](#here)\n\
            [a](#there)\n[a](docs)\n";
        assert_eq!(check("README.md", text), [1, 3, 7]);
        assert_eq!(check("docs/b.md", "[a](more.md)\n[a](../docs/more.md)\n[a](b/more.md)\n"), [3]);
    }

    #[test]
    fn a_path_that_is_no_file_is_found_in_documents_and_comments() {
        let text = "// `crates/tenure/src/lock.rs`, `lock.rs`, `docs/`, `docs/*.md`\n\
            // `crates/tenure/src/engine`\n// `key.rs`\n// `docs/*.rs`\nlet a = \"`b.rs`\";\n";
        assert_eq!(check("crates/core/src/a.rs", text), [2, 3, 4]);
        assert_eq!(check("A.md", &text.replace("// ", "").replace("let", "")), [2, 3, 4, 5]);
        assert!(check("A.md", "`/etc/a.sh` `.sh` `GET key.md`\n").is_empty());
        assert!(check("docs/from-go.md", "`go.sh`\n").is_empty());
    }

    #[test]
    fn a_path_in_a_drawing_that_is_no_file_is_found() {
        let text =
            "```\nlock  crates/tenure/src/lock.rs, gone.rs\n```\ngone.rs\n```sh\ngone.rs\n```\n";
        assert_eq!(check("A.md", text), [2]);
    }

    #[test]
    fn a_name_that_the_code_does_not_have_is_found() {
        let text = "`Lock`, `Lock::key`, `take_it`, `lock()`, `A_B`\n`Key`\n`Lock::A_B`\n\
            `take_all`\n`open()`\n`Gone`\n";
        for path in ["GLOSSARY.md", "crates/core/src/a.lua"] {
            let text =
                if path == "GLOSSARY.md" { text.into() } else { text.replace('\n', "\n-- ") };
            let text = if path == "GLOSSARY.md" { text } else { format!("-- {text}") };
            assert_eq!(check(path, &text), [2, 3, 4, 5, 6], "{path}");
        }
        let glossary = "| lock | its `key` | `Lock` | `Opener` |\n| key | a | `Opener` | – |\n";
        assert_eq!(check("GLOSSARY.md", glossary), [2]);
        assert!(check("A.md", "`a word`, `SETNX`, `std::Gone`, `tidy`, `x.y_z`\n").is_empty());
    }
}
