//! What a server replied.

use std::fmt;

/// A reply in RESP2.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// No such thing.
    Nil,
    /// A number.
    Int(i64),
    /// A status such as `OK`.
    Status(String),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Several replies.
    Array(Vec<Self>),
    /// An error, with its code in front.
    Error(String),
}

impl Value {
    /// The number in it, also when written as text.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => other
                .text()
                .and_then(|text| text.parse().ok())
                .unwrap_or_else(|| panic!("not a number: {self:?}")),
        }
    }

    /// The bytes of a bulk or a status; `None` for everything else.
    #[must_use]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(bytes) => Some(bytes),
            Self::Status(text) => Some(text.as_bytes()),
            Self::Nil | Self::Int(_) | Self::Array(_) | Self::Error(_) => None,
        }
    }

    /// The text of a bulk or a status; `None` for everything else, and when it is not UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The replies in an array.
    ///
    /// # Panics
    /// When it is no array.
    #[must_use]
    pub fn array(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            Self::Nil | Self::Int(_) | Self::Status(_) | Self::Bulk(_) | Self::Error(_) => {
                panic!("not an array: {self:?}")
            }
        }
    }

    /// The text of an error; `None` for everything else.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Error(text) => Some(text),
            Self::Nil | Self::Int(_) | Self::Status(_) | Self::Bulk(_) | Self::Array(_) => None,
        }
    }

    /// Whether it is [`Value::Nil`].
    #[must_use]
    pub fn is_nil(&self) -> bool {
        *self == Self::Nil
    }

    /// Whether it is the status `OK`.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Status(text) if text == "OK")
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("nil"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Status(text) => write!(f, "+{text}"),
            Self::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Array(items) => f.debug_list().entries(items).finish(),
            Self::Error(text) => write!(f, "-{text}"),
        }
    }
}
