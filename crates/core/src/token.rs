//! The unguessable value of one attempt.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use crate::HolderLabel;

/// The value an attempt writes at the key: it proves who may extend or release.
///
/// 128 random bits as 32 hex digits, `@`, and the holder's label, so that `redis-cli GET key` shows
/// who holds the lock. A later attempt never reuses it. It is a secret that can release the lock,
/// so `Debug` does not show it; [`Token::as_str`] returns it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(Arc<str>);

impl Token {
    /// Makes the token of a new attempt from 128 random bits.
    #[must_use]
    pub fn new(random: u128, label: &HolderLabel) -> Self {
        Self(format!("{random:032x}@{}", label.encoded()).into())
    }

    /// The token as it stands at the key. A secret.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The token's bytes. A secret.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// For maps by token, whose messages name it as text.
impl Borrow<str> for Token {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.0.split_once('@').map_or("", |(_, label)| label);
        write!(f, "Token(\u{2026}@{label})")
    }
}

/// Reads a token that was printed, for `resume` and for shell scripts.
impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let (random, label) = text.split_once('@').ok_or(TokenError)?;
        let hex = random.len() == 32
            && random.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        // A space would end the token inside a queue entry.
        let printable = label.bytes().all(|b| b.is_ascii_graphic());
        let short = label.len() <= 3 * HolderLabel::MAX_BYTES;
        if hex && printable && short { Ok(Self(text.into())) } else { Err(TokenError) }
    }
}

/// The text is not a token. Nothing was sent; the text is not repeated, since it may be a secret.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token: one has 32 hex digits, `@`, and a label of printable ASCII without spaces")]
pub struct TokenError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_holder_and_hides_its_secret() {
        let token = Token::new(0xabc, &HolderLabel::new("h/1").unwrap());
        assert_eq!(token.as_str(), "00000000000000000000000000000abc@h/1");
        assert!(!format!("{token:?}").contains("abc"), "{token:?}");
        assert_eq!(token.as_str().parse(), Ok(token));
    }

    #[test]
    fn only_tokens_parse() {
        for text in ["", "abc", "@", "0123456789abcdef0123456789abcdef"] {
            assert_eq!(text.parse::<Token>(), Err(TokenError), "{text}");
        }
        let random = "0".repeat(32);
        assert!(format!("{random}@").parse::<Token>().is_ok());
        assert!(format!("{random}@a b").parse::<Token>().is_err());
        assert!(format!("{random}@{}", "x".repeat(193)).parse::<Token>().is_err());
        assert!(format!("{}@", "A".repeat(32)).parse::<Token>().is_err());
    }
}
