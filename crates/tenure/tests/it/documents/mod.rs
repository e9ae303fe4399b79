//! What README and `docs/` show works: each Rust snippet is compiled, the SQL
//! is run, and no event or metric is missing.

mod fencing;
mod postgres;

use std::{fs, path::Path};

/// The Rust snippets of a document are doc tests only when `documents.rs` names the document.
#[test]
fn every_document_with_rust_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let compiled = include_str!("../../../src/documents.rs");
    let documents = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for path in documents.chain([root.join("README.md")]) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        assert!(!text.contains("```rust,ignore"), "{name}");
        if text.contains("```rust") {
            assert!(compiled.contains(&format!("{name:?}")), "{name} is not in documents.rs");
        }
    }
}

/// The documents have each text of the code that logs and counts: a message, a name or a label.
#[test]
fn every_event_and_metric_is_documented() {
    let code = include_str!("../../../src/event.rs");
    let (code, _tests) = code.split_once("#[cfg(test)]").expect("the code, and then its tests");
    let documents = [
        include_str!("../../../../../docs/logs.md"),
        include_str!("../../../../../docs/metrics.md"),
    ];
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let texts = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    for text in texts.filter(|text| !text.contains('{')) {
        let quoted = format!("`{text}");
        assert!(documents.iter().any(|document| document.contains(&quoted)), "{text:?}");
        let front_page = include_str!("../../../src/lib.rs");
        assert!(!text.starts_with("tenure_") || front_page.contains(&quoted), "{text:?}");
    }
}
