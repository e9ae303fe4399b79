//! The words of a file, as the checks of words, phrases and names see them.

use super::SourceFile;

/// A word of prose in lower case, or a break: nothing, where a sentence or a passage ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) line: usize,
    pub(super) text: String,
}

/// The words of documents, comments and messages. Text in backticks is one word, `` ` ``, and so
/// is a placeholder in braces.
pub(super) fn prose(source: &SourceFile) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut last = None;
    for piece in pieces(source) {
        if last.is_some_and(|last| !piece.continues(last)) {
            words.push(Word { line: piece.line, text: String::new() });
        }
        last = Some((piece.line, piece.passage));
        words.extend(words_of(piece.line, piece.text));
    }
    words
}

/// What stands in backticks in documents and comments, with its line.
pub(super) fn quoted(source: &SourceFile) -> Vec<(usize, &str)> {
    let is_read = |piece: &Piece<'_>| piece.passage != Passage::Text && !piece.text.contains("```");
    let pieces = pieces(source).into_iter().filter(is_read);
    let quoted = pieces.flat_map(|piece| {
        let inside = piece.text.split('`').skip(1).step_by(2);
        inside.map(move |text| (piece.line, text))
    });
    quoted.filter(|(_, text)| !text.is_empty()).collect()
}

/// The code of a line of Rust, Lua, shell or TOML, without its comment.
pub(super) fn code(line: &str) -> &str {
    let comments = ["//", "--", "#"].map(|start| format!(" {start} "));
    let starts = line.trim_start();
    if ["//", "-- ", "# "].iter().any(|start| starts.starts_with(start)) {
        return "";
    }
    let ends = comments.iter().filter_map(|comment| line.find(comment)).min();
    ends.and_then(|end| line.get(..end)).unwrap_or(line)
}

/// A line, or the part of one, that people read.
#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    line: usize,
    text: &'a str,
    passage: Passage,
}

impl Piece<'_> {
    fn continues(&self, (line, passage): (usize, Passage)) -> bool {
        self.passage == passage && self.line == line + 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passage {
    Document,
    Comment,
    /// A string of a program: a message, most often.
    Text,
}

fn pieces(source: &SourceFile) -> Vec<Piece<'_>> {
    let excused: Vec<usize> = source.excused().collect();
    let mut pieces = if source.is(&["md"]) {
        let document = |(line, text)| Piece { line, text, passage: Passage::Document };
        (1..).zip(source.text.lines()).map(document).collect()
    } else if source.is(&["lua"]) {
        let comment = |(line, text): (usize, _)| {
            let (_, text) = str::split_once(text, "--")?;
            Some(Piece { line, text, passage: Passage::Comment })
        };
        (1..).zip(source.text.lines()).filter_map(comment).collect()
    } else if source.is(&["rs"]) {
        of_rust(&source.text)
    } else {
        Vec::new()
    };
    // What tests write and expect is data.
    let has_messages = !source.path.contains("/tests/");
    pieces.retain(|piece| {
        let is_message = piece.passage == Passage::Text;
        excused.binary_search(&piece.line).is_err() && (has_messages || !is_message)
    });
    pieces
}

/// Comments and strings. Comments between `/*` and `*/` are not known here, and not used.
fn of_rust(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let (passage, skip, end) = if rest.starts_with("//") {
            let start = rest.find(|c| c != '/' && c != '!').unwrap_or(rest.len());
            (Passage::Comment, start, rest.find('\n').unwrap_or(rest.len()).max(start))
        } else if letter == '"' {
            (Passage::Text, 1, end_of_string(rest))
        } else if let Some(raw) = raw_string(rest) {
            (Passage::Text, raw.0, raw.1)
        } else {
            line += usize::from(letter == '\n');
            let skip = if letter == '\'' { end_of_letter(rest) } else { letter.len_utf8() };
            rest = rest.get(skip..).unwrap_or_default();
            continue;
        };
        let inside = rest.get(skip..end).unwrap_or_default();
        for (nth, text) in inside.split('\n').enumerate() {
            pieces.push(Piece { line: line + nth, text, passage });
        }
        line += inside.matches('\n').count();
        rest = rest.get(end..).unwrap_or_default();
        if passage == Passage::Text {
            rest = rest.trim_start_matches('"');
        }
    }
    pieces
}

/// Where the string ends that begins here with a quote.
fn end_of_string(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// Begin and end of what is inside `r"…"`, `r#"…"#` and so on.
fn raw_string(text: &str) -> Option<(usize, usize)> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inside = after.get(hashes..)?.strip_prefix('"')?;
    let start = hashes + 2;
    let end = inside.find(&format!("\"{}", "#".repeat(hashes)))?;
    Some((start, start + end))
}

/// Past a character such as `'"'` or `'\''`; past the tick alone of a lifetime.
fn end_of_letter(text: &str) -> usize {
    let letters: Vec<(usize, char)> = text.char_indices().take(5).collect();
    let end = match letters.as_slice() {
        [_, (_, '\\'), _, (at, '\''), ..] | [_, _, (at, '\''), ..] => *at,
        _ => 0,
    };
    end + 1
}

fn words_of(line: usize, text: &str) -> Vec<Word> {
    let word = |text: &str| Word { line, text: text.to_lowercase() };
    let mut words = Vec::new();
    for (nth, part) in text.split('`').enumerate() {
        if nth % 2 == 1 {
            words.push(word("`"));
            continue;
        }
        let mut rest = part;
        while let Some(letter) = rest.chars().next() {
            let end = rest.find(|c: char| !is_in_word(c)).unwrap_or(rest.len());
            let placeholder = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            if let Some((_, after)) = placeholder {
                words.push(word("`"));
                rest = after;
            } else if let Some(after) = rest.strip_prefix("\\n") {
                words.push(word(""));
                rest = after;
            } else if end == 0 {
                if ".,;:!?()|".contains(letter) {
                    words.push(word(""));
                }
                rest = rest.get(letter.len_utf8()..).unwrap_or_default();
            } else {
                words.push(word(rest.get(..end).unwrap_or_default()));
                rest = rest.get(end..).unwrap_or_default();
            }
        }
    }
    words
}

fn is_in_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_'’-".contains(letter)
}

/// The words that names consist of, in lower case: two in each of `is_free` and `LockKey`.
pub(super) fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for letter in text.chars() {
        let begins = letter.is_uppercase() && before.is_lowercase();
        if !letter.is_alphabetic() || begins {
            parts.push(String::new());
        }
        if letter.is_alphabetic() {
            parts.last_mut().into_iter().for_each(|part| part.extend(letter.to_lowercase()));
        }
        before = letter;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::{code, parts, prose, quoted};
    use crate::tidy::testing::source;

    fn words(path: &str, text: &str) -> Vec<String> {
        let show = |word: super::Word| match word.text.as_str() {
            "" => "/".to_owned(),
            text => format!("{}{text}", word.line),
        };
        prose(&source(path, text)).into_iter().map(show).collect()
    }

    #[test]
    fn prose_is_what_people_read_and_passages_are_apart() {
        let rust = "/// One\n/// two.\nfn f<'a>() { \"fo\\\"ur {x:?}\\\n  fi\\nve\" } // six `x`\n\
            const A: char = '\"'; let b = r#\"se\"ven\"#; // eight\n";
        assert_eq!(
            words("a.rs", rust),
            [
                "1one", "2two", "/", "/", "3fo", "3ur", "3`", "4fi", "/", "4ve", "/", "4six", "4`",
                "/", "5se", "5ven", "/", "5eight"
            ]
        );
        assert_eq!(words("a.md", "A `b` c, d\n"), ["1a", "1`", "1c", "/", "1d"]);
        assert_eq!(words("a.lua", "local a -- b\n"), ["1b"]);
        assert!(words("a.toml", "a = \"b\"\n").is_empty());
    }

    #[test]
    fn quoted_text_is_found_in_documents_and_comments_alone() {
        let rust = "/// See `a.rs`.\nlet b = \"`c`\"; // `d`\n";
        assert_eq!(quoted(&source("a.rs", rust)), [(1, "a.rs"), (2, "d")]);
        assert_eq!(quoted(&source("a.md", "`a` and `b`\n")), [(1, "a"), (1, "b")]);
    }

    #[test]
    fn code_ends_where_a_comment_begins() {
        assert_eq!(code("let a = \"redis://b\"; // c"), "let a = \"redis://b\";");
        assert_eq!(code("  /// a"), "");
        assert_eq!(code("a --b -- c"), "a --b");
    }

    #[test]
    fn names_have_parts() {
        assert_eq!(
            parts("fn tryAnother_one2(Step-by)"),
            ["fn", "try", "another", "one", "step", "by"]
        );
    }
}
