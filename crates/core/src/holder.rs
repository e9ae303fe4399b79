//! Who has the lease: a label for people, never a secret.

use std::{fmt, fmt::Write as _, sync::Arc};

use crate::Shown;

/// The label that a holder shows to others: `host/pid` unless the user names one.
///
/// Kept as it travels: printable ASCII as it is; `%`, spaces and all else percent-encoded.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HolderLabel(Arc<str>);

impl HolderLabel {
    /// The longest label accepted, in bytes of UTF-8 before encoding.
    pub const MAX_BYTES: usize = 64;

    /// Encodes a label. It may be empty.
    ///
    /// # Errors
    ///
    /// [`LabelError`] when it is longer than [`HolderLabel::MAX_BYTES`].
    pub fn new(label: &str) -> Result<Self, LabelError> {
        if label.len() > Self::MAX_BYTES {
            return Err(LabelError { bytes: label.len() });
        }
        let mut encoded = String::with_capacity(label.len());
        for byte in label.bytes() {
            if byte.is_ascii_graphic() && byte != b'%' {
                encoded.push(char::from(byte));
            } else {
                // Writing into a String cannot fail.
                _ = write!(encoded, "%{byte:02X}");
            }
        }
        Ok(Self(encoded.into()))
    }

    /// The label as it travels, percent-encoded.
    #[must_use]
    pub fn encoded(&self) -> &str {
        &self.0
    }

    pub(crate) fn from_encoded(encoded: &str) -> Self {
        Self(encoded.into())
    }

    /// The label as the holder wrote it, or percent-encoded if that is not UTF-8. It may contain
    /// anything.
    #[must_use]
    pub fn decoded(&self) -> String {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_bytes();
        while let [first, tail @ ..] = rest {
            let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
            match (first, code.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
                (b'%', Some(byte)) => {
                    bytes.push(byte);
                    rest = tail.get(2..).unwrap_or_default();
                }
                _ => {
                    bytes.push(*first);
                    rest = tail;
                }
            }
        }
        String::from_utf8(bytes).unwrap_or_else(|_| self.0.to_string())
    }
}

/// Shows the label as it was written, as [`Shown`] does.
impl fmt::Display for HolderLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown::new(&self.decoded()).fmt(f)
    }
}

impl fmt::Debug for HolderLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HolderLabel({self})")
    }
}

/// The empty label.
impl Default for HolderLabel {
    fn default() -> Self {
        Self("".into())
    }
}

/// The label is too long. Nothing was sent.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the label has {bytes} bytes; the longest allowed is {} bytes", HolderLabel::MAX_BYTES)]
pub struct LabelError {
    bytes: usize,
}

/// The holder of a lock, as its key shows it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A client of tenure, by the label in its token.
    Tenure(HolderLabel),
    /// A client of another library, by the bytes it wrote, or the first
    /// [`Holder::MAX_FOREIGN_BYTES`] of them; they are never interpreted.
    Foreign(Arc<[u8]>),
    /// Something that is not a string stands at the key: the name of its type.
    ForeignType(Arc<str>),
}

impl Holder {
    /// What is kept of another library's value, in bytes. Longer than any token of ours (225), so
    /// the beginning of a longer value equals none; a value may have 512 MiB.
    pub const MAX_FOREIGN_BYTES: usize = 256;

    /// Reads the holder off the value at a lock's key.
    ///
    /// A token of ours is 32 hex digits, `@`, and a label without spaces; anything else is foreign.
    #[must_use]
    pub fn from_value(value: &[u8]) -> Self {
        let value = value.get(..Self::MAX_FOREIGN_BYTES).unwrap_or(value);
        let ours = std::str::from_utf8(value).ok().and_then(|text| text.split_once('@'));
        match ours {
            Some((secret, label))
                if secret.len() == 32
                    && label.len() <= 3 * HolderLabel::MAX_BYTES
                    && secret.bytes().all(|b| b.is_ascii_hexdigit())
                    && label.bytes().all(|b| b.is_ascii_graphic()) =>
            {
                Self::Tenure(HolderLabel::from_encoded(label))
            }
            _ => Self::Foreign(value.into()),
        }
    }

    /// Whether a lock library may have written the value at the key: a string that is neither empty
    /// nor longer than 255 bytes, and begins like no JSON and no XML (`{`, `[`, `<`).
    ///
    /// Such a value may still be other data: a short string does not say what it is for.
    #[must_use]
    pub fn may_be_lock(&self) -> bool {
        match self {
            Self::Tenure(_) => true,
            Self::Foreign(value) => {
                let is_data = matches!(value.first(), None | Some(b'{' | b'[' | b'<'));
                !is_data && value.len() < Self::MAX_FOREIGN_BYTES
            }
            Self::ForeignType(_) => false,
        }
    }

    /// Whether another library holds the lock.
    #[must_use]
    pub const fn is_foreign(&self) -> bool {
        !matches!(self, Self::Tenure(_))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenure(label) if label.encoded().is_empty() => f.write_str("(no label)"),
            Self::Tenure(label) => label.fmt(f),
            Self::Foreign(value) => {
                write!(f, "another library's value {}", Shown::quoted(value).at_most(MAX_OF_VALUE))
            }
            Self::ForeignType(name) => {
                write!(f, "a value of type {}", Shown::new(name.as_bytes()).at_most(MAX_OF_TYPE))
            }
        }
    }
}

/// Enough of a foreign value to recognise it by; the longest known token has 60 bytes.
const MAX_OF_VALUE: usize = 80;

/// Longer than the name of any type: modules name theirs with nine letters.
const MAX_OF_TYPE: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_round_trip() {
        for label in ["host/7", "", "a b%c", "\u{5907}\u{4efd}", "tab\tend", "100%"] {
            let encoded = HolderLabel::new(label).unwrap();
            assert!(encoded.encoded().bytes().all(|b| b.is_ascii_graphic()), "{encoded:?}");
            assert_eq!(encoded.decoded(), label);
        }
        assert_eq!(HolderLabel::new(&"x".repeat(65)), Err(LabelError { bytes: 65 }));
        assert_eq!(HolderLabel::new("tab\tend").unwrap().to_string(), "tab\\tend");
    }

    #[test]
    fn values_of_other_libraries_are_foreign() {
        let ours = b"0123456789abcdef0123456789abcdef@host/7";
        assert_eq!(Holder::from_value(ours).to_string(), "host/7");
        // redis-py and node-redlock write 32 hex digits too: no `@`, not ours.
        assert!(Holder::from_value(&ours[..32]).is_foreign());
        for value in [&b"user@host"[..], b"", b"\xff\x00", b"0123456789abcdef0123456789abcdef@a b"]
        {
            assert!(Holder::from_value(value).is_foreign(), "{value:?}");
        }
        assert!(Holder::from_value(&[b'x'; 200]).to_string().len() < 120);
    }

    #[test]
    fn a_foreign_value_cannot_control_a_terminal_or_forge_a_line() {
        let odd = "a\u{1b}[2J\u{202e}\r\nfree\u{200b}";
        let label = HolderLabel::new(odd).unwrap();
        let token = format!("{}@{}", "0".repeat(32), label.encoded());
        for holder in [
            Holder::from_value(token.as_bytes()),
            Holder::from_value(odd.as_bytes()),
            Holder::ForeignType(odd.into()),
        ] {
            let shown = format!("{holder} {holder:?}");
            assert!(shown.chars().all(Shown::is_plain), "{shown:?}");
        }
    }
}
