//! What documentation must say.

use super::{Finding, SourceFile};

/// Public async functions of the library that do not say what a dropped future leaves behind.
pub(super) fn silent_about_cancellation(source: &SourceFile) -> Vec<Finding> {
    if !source.path.starts_with("crates/tenure/src/") || !source.is(&["rs"]) {
        return Vec::new();
    }
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let functions = lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub async fn "));
    let silent = functions.filter(|(at, _)| {
        let above = lines.get(..*at).unwrap_or_default().iter().rev();
        let mut doc = above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
        !doc.any(|line| *line == "/// # Cancel safety")
    });
    silent.map(|(at, _)| source.finding(at + 1, "no section \"# Cancel safety\"")).collect()
}

/// Scripts of the core that do not begin by saying what they are.
pub(super) fn lua_without_header(source: &SourceFile) -> Vec<Finding> {
    if !source.path.starts_with("crates/core/src/") || !source.is(&["lua"]) {
        return Vec::new();
    }
    let header: Vec<&str> = source.text.lines().take_while(|line| line.starts_with("--")).collect();
    let header = header.join("\n");
    let lacking: Vec<_> = HEADER.into_iter().filter(|word| !header.contains(word)).collect();
    // A later part of a script has its header in the first.
    if lacking.is_empty() || header.contains("Library") || header.contains(" part: ") {
        return Vec::new();
    }
    vec![source.finding(1, format!("the header does not say {}", lacking.join(", ")))]
}

const HEADER: [&str; 4] = ["KEYS", "ARGV", "Replies", "Atomic"];

#[cfg(test)]
mod tests {
    use super::{lua_without_header, silent_about_cancellation};
    use crate::tidy::testing::{lines, source};

    #[test]
    fn an_async_function_without_cancel_safety_is_found() {
        let text = "/// # Cancel safety\n/// Safe.\n#[inline]\npub async fn a() {}\n\n\
            /// Waits.\npub async fn b() {}\npub(crate) async fn c() {}\n";
        assert_eq!(lines(&silent_about_cancellation(&source("crates/tenure/src/a.rs", text))), [7]);
        assert!(silent_about_cancellation(&source("crates/cli/src/a.rs", text)).is_empty());
    }

    #[test]
    fn a_script_without_header_is_found() {
        let path = "crates/core/src/script/a.lua";
        let good = "-- Takes.\n-- KEYS 1\n-- ARGV 1\n-- Replies 1\n-- Atomic because.\nreturn 1\n";
        assert!(lua_without_header(&source(path, good)).is_empty());
        assert!(lua_without_header(&source(path, "-- Library of all.\nlocal a\n")).is_empty());
        assert!(lua_without_header(&source(path, "-- Take, second part: held.\n")).is_empty());
        let late = good.replace("-- Atomic", "\n-- Atomic");
        assert_eq!(lines(&lua_without_header(&source(path, &late))), [1]);
        assert_eq!(lines(&lua_without_header(&source(path, "return 1\n"))), [1]);
    }
}
