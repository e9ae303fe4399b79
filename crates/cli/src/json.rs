//! The little JSON that the tool writes.

use std::fmt::Write as _;

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

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter < ' ' || letter == '\u{7f}' => {
                _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
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
}
