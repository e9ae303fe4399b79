//! What of text that others wrote may be shown, and how.

use std::fmt::{self, Write as _};

/// Text from outside, safe to show on a terminal and in a log: a key, a label, a value, the words
/// of a server, an argument.
///
/// One line: what is invisible, or changes how the text around it is shown, is escaped as in Rust
/// (`\n`, `\u{202e}`), and so is each byte that is not UTF-8 (`\xff`). That covers control
/// characters, line separators, bidirectional overrides, zero-width characters and variation
/// selectors. What is longer than a bound ends in `…`.
///
/// It is for people: take the bytes themselves to compare or to store them.
///
/// ```
/// use tenure_core::Shown;
///
/// assert_eq!(Shown::new("a\u{1b}[2J\u{202e}b").to_string(), "a\\u{1b}[2J\\u{202e}b");
/// assert_eq!(Shown::quoted(b"say \"\xff\"").to_string(), "\"say \\\"\\xff\\\"\"");
/// assert_eq!(Shown::new("long").at_most(2).to_string(), "lo\u{2026}");
/// ```
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    bytes: &'a [u8],
    most: usize,
    is_quoted: bool,
}

impl<'a> Shown<'a> {
    /// The longest text that is shown whole unless [`Shown::at_most`] says otherwise, in
    /// characters: a few lines of a terminal, and longer than any sentence of a server.
    pub const MAX: usize = 300;

    /// Text among other text.
    #[must_use]
    pub fn new(text: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { bytes: text.as_ref(), most: Self::MAX, is_quoted: false }
    }

    /// Text in double quotes. Quotes and backslashes inside it are escaped, too, so that two texts
    /// that are shown whole look alike only when they are the same.
    #[must_use]
    pub fn quoted(text: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { is_quoted: true, ..Self::new(text) }
    }

    /// The same with another bound, in characters before escaping.
    #[must_use]
    pub fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Whether a character is shown as it is.
    #[must_use]
    pub fn is_plain(c: char) -> bool {
        !c.is_control() && !HIDDEN.iter().any(|&(first, last)| (first..=last).contains(&c))
    }

    fn write_char(self, f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
        match c {
            '"' | '\\' if self.is_quoted => write!(f, "\\{c}"),
            c if Self::is_plain(c) => f.write_char(c),
            c => write!(f, "{}", c.escape_default()),
        }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.is_quoted { "\"" } else { "" };
        f.write_str(quote)?;
        let mut left = self.most;
        for chunk in self.bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                if left == 0 {
                    return write!(f, "{quote}\u{2026}");
                }
                left -= 1;
                self.write_char(f, c)?;
            }
            for byte in chunk.invalid() {
                if left == 0 {
                    return write!(f, "{quote}\u{2026}");
                }
                left -= 1;
                write!(f, "\\x{byte:02x}")?;
            }
        }
        f.write_str(quote)
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Self { is_quoted: true, ..*self })
    }
}

/// Characters besides controls that cannot be seen, or that change how their neighbours are shown:
/// the line and paragraph separators, `Bidi_Control`, and `Default_Ignorable_Code_Point` of Unicode
/// 16 (`PropList.txt`, `DerivedCoreProperties.txt`), with the other format characters that have no
/// glyph. In order.
const HIDDEN: [(char, char); 22] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{fffe}', '\u{ffff}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1345f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
    ('\u{10fffe}', '\u{10ffff}'),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_text_is_shown_unchanged() {
        for text in [
            "order:7",
            "\u{8ba2}\u{5355}",
            "\u{e2b}\u{e31}\u{e27}",
            "\u{928}\u{93f}",
            "\u{1f512} \"\\'",
        ] {
            assert_eq!(Shown::new(text).to_string(), text);
        }
    }

    #[test]
    fn control_and_hidden_characters_are_escaped() {
        for text in [
            "\u{1b}[2J",
            "\r",
            "\n",
            "\u{7f}",
            "\u{9b}",
            "\u{85}",
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{feff}",
            "\u{2028}",
            "\u{2029}",
            "\u{fe0f}",
            "\u{e0041}",
            "\u{3164}",
            "\u{ad}",
        ] {
            let shown = Shown::new(text).to_string();
            assert!(shown.starts_with('\\') && shown.chars().all(Shown::is_plain), "{shown}");
        }
    }

    #[test]
    fn the_hidden_characters_are_in_order() {
        let ends: Vec<char> = HIDDEN.iter().flat_map(|&(first, last)| [first, last]).collect();
        assert!(ends.is_sorted());
    }

    proptest! {
        #[test]
        fn shown_text_is_one_plain_line_of_bounded_length(
            bytes in proptest::collection::vec(any::<u8>(), 0..64),
            text in "\\PC*|(?s).*",
            most in 0_usize..40,
        ) {
            for bytes in [&bytes[..], text.as_bytes()] {
                for shown in [Shown::new(bytes), Shown::quoted(bytes)] {
                    let line = shown.at_most(most).to_string();
                    prop_assert!(line.chars().all(Shown::is_plain), "{line:?}");
                    prop_assert!(line.len() <= most * "\\u{10ffff}".len() + 5, "{line:?}");
                }
            }
        }

        #[test]
        fn no_two_texts_look_alike_in_quotes(
            one in proptest::collection::vec(any::<u8>(), 0..4),
            other in proptest::collection::vec(any::<u8>(), 0..4),
        ) {
            let alike = Shown::quoted(&one).to_string() == Shown::quoted(&other).to_string();
            prop_assert_eq!(alike, one == other);
        }
    }
}
