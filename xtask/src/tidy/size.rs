//! Nothing too long: files, lines, functions.

use super::{Finding, SourceFile};

/// Rust files with too many lines.
pub(super) fn long_files(source: &SourceFile) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if !source.is(&["rs"]) || lines <= MAX_FILE {
        return Vec::new();
    }
    vec![source.finding(lines, format!("{lines} lines, at most {MAX_FILE}"))]
}

/// Lines with too many columns.
pub(super) fn long_lines(source: &SourceFile) -> Vec<Finding> {
    if !source.is(&["rs", "lua"]) {
        return Vec::new();
    }
    let columns = source.lines().map(|(line, text)| (line, text.chars().count()));
    let long = columns.filter(|(_, columns)| *columns > MAX_COLUMNS);
    let says = |columns| format!("{columns} columns, at most {MAX_COLUMNS}");
    long.map(|(line, columns)| source.finding(line, says(columns))).collect()
}

/// Functions with too many lines, by a rough count of braces: those in comments, strings and
/// characters on one line are left out, those in strings over several lines are not.
pub(super) fn long_functions(source: &SourceFile) -> Vec<Finding> {
    if !source.is(&["rs"]) {
        return Vec::new();
    }
    let code: Vec<String> = source.text.lines().map(without_text).collect();
    let starts = code.iter().enumerate().filter(|(_, line)| starts_function(line));
    starts
        .filter_map(|(at, _)| {
            let lines = body_lines(code.get(at..)?)?;
            let says = || format!("a function of {lines} lines, at most {MAX_FUNCTION}");
            (lines > MAX_FUNCTION).then(|| source.finding(at + 1, says()))
        })
        .collect()
}

fn starts_function(line: &str) -> bool {
    let words: Vec<_> = line.split_whitespace().take_while(|word| *word != "fn").collect();
    let modifiers = ["const", "async", "unsafe", "extern"];
    let known =
        |word: &&str| word.starts_with("pub") || modifiers.contains(word) || *word == "\"\"";
    line.split_whitespace().nth(words.len()) == Some("fn") && words.iter().all(known)
}

/// Lines from the signature to the brace that closes the body; none without a body.
fn body_lines(code: &[String]) -> Option<usize> {
    let mut depth = 0_usize;
    for (nth, line) in code.iter().enumerate() {
        for letter in line.chars() {
            match letter {
                ';' if depth == 0 => return None,
                '{' | '(' | '[' => depth += 1,
                '}' if depth == 1 => return Some(nth + 1),
                '}' | ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    None
}

/// The line without comment, and with strings and characters emptied.
pub(super) fn without_text(line: &str) -> String {
    let mut code = String::new();
    let mut letters = line.chars().peekable();
    let mut in_string = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if in_string => drop(letters.next()),
            '"' => {
                in_string = !in_string;
                code.push('"');
            }
            _ if in_string => {}
            '/' if letters.peek() == Some(&'/') => break,
            '\'' => {
                // A character, such as '{' or '\''; or else a lifetime.
                let rest: Vec<char> = letters.clone().take(3).collect();
                let skip = match rest.as_slice() {
                    ['\\', _, '\''] => 3,
                    [_, '\'', ..] => 2,
                    _ => 0,
                };
                letters.by_ref().take(skip).for_each(drop);
            }
            _ => code.push(letter),
        }
    }
    code
}

const MAX_FILE: usize = 400;
const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION: usize = 90;

#[cfg(test)]
mod tests {
    use super::{long_files, long_functions, long_lines};
    use crate::tidy::testing::{lines, source};

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(lines(&long_files(&source("a.rs", &"\n".repeat(401)))), [401]);
        assert!(long_files(&source("a.rs", &"\n".repeat(400))).is_empty());
        assert!(long_files(&source("a.md", &"\n".repeat(401))).is_empty());
    }

    #[test]
    fn a_long_line_is_found_by_columns_not_bytes() {
        let text = format!("{}\n{}\n", "é".repeat(100), "é".repeat(101));
        assert_eq!(lines(&long_lines(&source("a.lua", &text))), [2]);
        assert!(long_lines(&source("a.md", &text)).is_empty());
    }

    #[test]
    fn a_long_function_is_found_in_spite_of_braces_in_text() {
        let body = "    let s = (\"}\", '}', '\\''); // }\n".repeat(89);
        let long = format!("struct A;\n\n    pub(crate) async fn a<'x>(\n{body}) {{\n}}\n");
        assert_eq!(lines(&long_functions(&source("a.rs", &long))), [3]);
        let short = format!("fn a() {{\n{}}}\n", body.replacen("    let", "  let", 1));
        assert_eq!(lines(&long_functions(&source("a.rs", &short))), [1], "91 lines");
        let short = short.replacen("; // }\n", ";", 1);
        assert!(long_functions(&source("a.rs", &short)).is_empty(), "90 lines");
    }

    #[test]
    fn a_function_without_body_has_no_length() {
        let text = format!("trait T {{\n    fn a(x: [u8; 4]);\n{}}}\n", "    // …\n".repeat(100));
        assert!(long_functions(&source("a.rs", &text)).is_empty());
    }
}
