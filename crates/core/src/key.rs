//! The key that stands for the lock, and the names derived from it.

use std::{fmt, sync::Arc};

use crate::{MARKER_KEY, Shown};

/// The endings that derived names have; a lock key that ends in one is refused.
///
/// Without this rule the lock `a:tenure:fence` would stand on the fence key of the lock `a`.
pub const RESERVED_SUFFIXES: [&str; 4] =
    [":tenure:fence", ":tenure:queue", ":tenure.fence", ":tenure.queue"];

/// The Redis key that stands for a lock, exactly as the user wrote it.
///
/// Any bytes will do (NUL, CRLF, spaces, emoji, other than UTF-8) from 1 byte to 64 KiB, except an
/// ending of [`RESERVED_SUFFIXES`], and except [`MARKER_KEY`]. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey(Arc<[u8]>);

impl LockKey {
    /// The longest key accepted, in bytes.
    ///
    /// Servers take up to 512 MiB; a key of that size is a mistake, and each op would carry it.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// Takes the key as it is.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when the key is empty, longer than [`LockKey::MAX_BYTES`], ends in one of
    /// [`RESERVED_SUFFIXES`], or is [`MARKER_KEY`].
    pub fn new(key: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        let key = key.as_ref();
        if key.is_empty() {
            return Err(KeyError::Empty);
        }
        if key.len() > Self::MAX_BYTES {
            return Err(KeyError::TooLong { bytes: key.len() });
        }
        if key == MARKER_KEY {
            return Err(KeyError::Marker);
        }
        if let Some(suffix) = RESERVED_SUFFIXES.iter().find(|s| key.ends_with(s.as_bytes())) {
            return Err(KeyError::Reserved { key: Shown::quoted(key).to_string(), suffix });
        }
        Ok(Self(key.into()))
    }

    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key of this lock's fencing counter, in the same Cluster slot wherever one exists.
    #[must_use]
    pub fn fence(&self) -> Vec<u8> {
        self.derived("fence")
    }

    /// The key of this lock's wait queue, in the same Cluster slot wherever one exists.
    #[must_use]
    pub fn queue(&self) -> Vec<u8> {
        self.derived("queue")
    }

    /// Whether the derived keys are in this key's Cluster slot.
    ///
    /// False for keys such as `a}b`: they hash whole, and no wrapped name hashes the same.
    #[must_use]
    pub fn has_slot_mates(&self) -> bool {
        self.has_hash_tag() || !self.0.contains(&b'}')
    }

    /// `key:tenure:part` when the key has a hash tag, else `{key}:tenure.part`.
    ///
    /// The two forms end differently so that `foo` and `{foo}` never share a derived key.
    fn derived(&self, part: &str) -> Vec<u8> {
        let key = &self.0;
        if self.has_hash_tag() {
            [key, &b":tenure:"[..], part.as_bytes()].concat()
        } else {
            [b"{", &key[..], b"}:tenure.", part.as_bytes()].concat()
        }
    }

    /// Whether Cluster hashes only a part of the key: the first `{`, the first `}` after it, and
    /// something between.
    fn has_hash_tag(&self) -> bool {
        let Some(open) = self.0.iter().position(|&b| b == b'{') else { return false };
        let tag = self.0.iter().skip(open + 1).position(|&b| b == b'}');
        tag.is_some_and(|length| length > 0)
    }
}

/// Shows the key as [`Shown`] does; [`LockKey::as_bytes`] is the key itself.
impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown::new(&self.0).fmt(f)
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockKey({self})")
    }
}

/// Why a key cannot stand for a lock. Nothing was sent.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key has no bytes.
    #[error("the lock key is empty; it needs at least 1 byte")]
    Empty,
    /// The key is longer than [`LockKey::MAX_BYTES`].
    #[error("the lock key has {bytes} bytes; the longest allowed is {} bytes", LockKey::MAX_BYTES)]
    TooLong {
        /// The length of the key that was given.
        bytes: usize,
    },
    /// The key ends like a key that tenure derives.
    #[error("the lock key {key} ends in \"{suffix}\", which tenure keeps for itself")]
    Reserved {
        /// The key that was given, as [`Shown::quoted`] shows it.
        key: String,
        /// The ending it may not have.
        suffix: &'static str,
    },
    /// The key is that of the marker by which a server shows that it forgot nothing.
    #[error("the lock key is \"tenure:marker\", which tenure keeps for itself")]
    Marker,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(key: &str) -> String {
        String::from_utf8(LockKey::new(key).unwrap().fence()).unwrap()
    }

    #[test]
    fn derived_names_are_in_the_same_slot_and_injective() {
        assert_eq!(fence("foo"), "{foo}:tenure.fence");
        assert_eq!(fence("{foo}"), "{foo}:tenure:fence");
        assert_eq!(fence("{foo}:lock"), "{foo}:lock:tenure:fence");
        assert_eq!(fence("x{a{b}c}y"), "x{a{b}c}y:tenure:fence");
        // No valid tag: the whole key hashes.
        assert_eq!(fence("{bar"), "{{bar}:tenure.fence");
        assert_eq!(fence("a}b"), "{a}b}:tenure.fence");
        assert_eq!(fence("foo{}{bar}"), "{foo{}{bar}}:tenure.fence");
    }

    #[test]
    fn only_odd_keys_lack_slot_mates() {
        for (key, mates) in
            [("foo", true), ("{foo}", true), ("{bar", true), ("a}b", false), ("a{}b", false)]
        {
            assert_eq!(LockKey::new(key).unwrap().has_slot_mates(), mates, "{key}");
        }
    }

    #[test]
    fn bad_keys_are_refused_and_odd_ones_are_not() {
        assert_eq!(LockKey::new(""), Err(KeyError::Empty));
        let long = vec![b'x'; LockKey::MAX_BYTES + 1];
        assert_eq!(LockKey::new(&long), Err(KeyError::TooLong { bytes: 65_537 }));
        assert!(LockKey::new(&long[1..]).is_ok());
        for suffix in RESERVED_SUFFIXES {
            let error = LockKey::new(format!("a{suffix}")).unwrap_err();
            assert!(error.to_string().contains(suffix), "{error}");
        }
        assert_eq!(LockKey::new(MARKER_KEY), Err(KeyError::Marker));
        for key in [&b"a\0b"[..], b"a\r\nb", b"a b", b"\xff\xfe", "\u{1f512}".as_bytes()] {
            assert_eq!(LockKey::new(key).unwrap().as_bytes(), key);
        }
    }

    #[test]
    fn keys_print_readably() {
        assert_eq!(LockKey::new("\u{8ba2}\u{5355}").unwrap().to_string(), "\u{8ba2}\u{5355}");
        assert_eq!(LockKey::new(b"a\r\n\xff").unwrap().to_string(), "a\\r\\n\\xff");
    }
}
