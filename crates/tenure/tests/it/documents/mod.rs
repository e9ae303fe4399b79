//! What README and `docs/` show works: each Rust snippet is compiled, and the SQL is run.

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
