//! The little JSON that the tool writes.

use std::fmt::Write as _;

use tenure::{Holder, Shown};

/// An object being written, one member after the other.
#[derive(Debug)]
pub(crate) struct Object(String);

impl Object {
    /// No member yet.
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// A text, or null.
    pub(crate) fn text(self, name: &str, value: Option<&str>) -> Self {
        self.member(name, value.map(quoted))
    }

    /// A lock's key: `key`, exact where it is text; else for people, with the bytes in `key_hex`,
    /// which `--key-hex` takes in again.
    pub(crate) fn key(self, key: &[u8]) -> Self {
        if let Ok(text) = std::str::from_utf8(key) {
            return self.text("key", Some(text));
        }
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        self.text("key", Some(&Shown::new(key).to_string())).text("key_hex", Some(&hex))
    }

    /// The holder of a lock, or null: the label exactly as its holder wrote it; for people when
    /// there is none, or another library holds the lock.
    pub(crate) fn holder(self, name: &str, holder: Option<&Holder>) -> Self {
        let text = holder.map(|holder| match holder {
            Holder::Tenure(label) if !label.encoded().is_empty() => label.decoded(),
            holder => holder.to_string(),
        });
        self.text(name, text.as_deref())
    }

    /// A number, or null.
    pub(crate) fn number(self, name: &str, value: Option<impl Into<u64>>) -> Self {
        self.member(name, value.map(|value| value.into().to_string()))
    }

    /// A yes or no.
    pub(crate) fn flag(self, name: &str, value: bool) -> Self {
        self.member(name, Some(value.to_string()))
    }

    /// Objects, in order.
    pub(crate) fn objects(self, name: &str, values: impl IntoIterator<Item = Self>) -> Self {
        let values: Vec<_> = values.into_iter().map(Self::end).collect();
        self.member(name, Some(format!("[{}]", values.join(","))))
    }

    /// Objects, in order, or null.
    pub(crate) fn objects_or_null(
        self,
        name: &str,
        values: Option<impl IntoIterator<Item = Self>>,
    ) -> Self {
        match values {
            Some(values) => self.objects(name, values),
            None => self.member(name, None),
        }
    }

    /// The whole object as a line.
    pub(crate) fn line(self) -> String {
        self.end() + "\n"
    }

    fn end(self) -> String {
        self.0 + "}"
    }

    fn member(mut self, name: &str, value: Option<String>) -> Self {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let value = value.unwrap_or_else(|| "null".to_owned());
        // Writing into a String cannot fail.
        _ = write!(self.0, "{comma}{}:{value}", quoted(name));
        self
    }
}

/// What is not plain is written by its number, so the line can be shown, and means the same.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if Shown::is_plain(letter) => quoted.push(letter),
            letter => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    // Writing into a String cannot fail.
                    _ = write!(quoted, "\\u{unit:04x}");
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_one_line_of_json() {
        let object = Object::new()
            .text("key", Some("a\"\\\n\u{7f}é"))
            .text("none", None)
            .number("n", Some(7_u32))
            .number("no_n", None::<u64>)
            .flag("held", true)
            .objects("of", [Object::new().flag("x", false), Object::new()]);
        let line = "{\"key\":\"a\\\"\\\\\\u000a\\u007fé\",\"none\":null,\"n\":7,\"no_n\":null,\
                    \"held\":true,\"of\":[{\"x\":false},{}]}\n";
        assert_eq!(object.line(), line);
    }

    /// Reads a string of JSON, as any reader of it would.
    fn read(quoted: &str) -> String {
        let mut units = Vec::new();
        let mut letters = quoted[1..quoted.len() - 1].chars();
        while let Some(letter) = letters.next() {
            let mut escape = || match letters.next() {
                Some('u') => {
                    let hex: String = letters.by_ref().take(4).collect();
                    vec![u16::from_str_radix(&hex, 16).unwrap()]
                }
                other => other.unwrap().encode_utf16(&mut [0; 2]).to_vec(),
            };
            units.extend(match letter {
                '\\' => escape(),
                letter => letter.encode_utf16(&mut [0; 2]).to_vec(),
            });
        }
        String::from_utf16(&units).unwrap()
    }

    #[test]
    fn any_text_is_printable_and_round_trips() {
        let every = ('\0'..=char::MAX).collect::<String>();
        let written = quoted(&every);
        assert!(written.chars().all(Shown::is_plain));
        assert_eq!(read(&written), every);
    }

    #[test]
    fn no_two_keys_look_alike() {
        let line = |key: &[u8]| Object::new().key(key).line();
        assert_eq!(line("k\u{e9}".as_bytes()), "{\"key\":\"k\u{e9}\"}\n");
        assert_eq!(line(b"a\xff"), "{\"key\":\"a\\\\xff\",\"key_hex\":\"61ff\"}\n");
        let alike: [&[u8]; 4] = [b"a\xff", b"a\xfe", b"a\\xff", "a\u{fffd}".as_bytes()];
        for (at, one) in alike.iter().enumerate() {
            assert!(alike[..at].iter().all(|other| line(other) != line(one)), "{one:?}");
        }
    }
}
