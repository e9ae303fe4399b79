//! Asking the server to report when another client changes a key that was read.

use bytes::BytesMut;
use tenure_core::{LockKey, script::Answer};

use super::{in_flight::Expected, resp};

/// Whether this connection tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tracking {
    #[default]
    Off,
    On,
    /// The server knows no tracking, or this user may not have it.
    Refused,
}

impl Tracking {
    /// Tracks a key until it is changed, by anybody; changes over this connection are not reported.
    /// Returns which answers are to come.
    ///
    /// Tracked is what is read right behind a `CACHING YES` and nothing else: if scripts read under
    /// tracking, each join of the queue would be reported.
    pub(super) fn track(&mut self, key: &LockKey, out: &mut BytesMut) -> Vec<Expected> {
        if *self == Self::Refused {
            return Vec::new();
        }
        let mut expected = Vec::with_capacity(3);
        if *self == Self::Off {
            *self = Self::On;
            resp::encode(out, &[b"CLIENT", b"TRACKING", b"ON", b"OPTIN", b"NOLOOP"]);
            expected.push(Expected::Tracking);
        }
        resp::encode(out, &[b"CLIENT", b"CACHING", b"YES"]);
        // A value of others may have 512 MiB, and its beginning is enough.
        resp::encode(out, &[b"GETRANGE", key.as_bytes(), b"0", b"255"]);
        expected.extend([Expected::Caching, Expected::Watched(key.clone())]);
        expected
    }
}

/// What a message says that was changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Changed<'a> {
    Keys(Vec<&'a [u8]>),
    Everything,
}

/// Reads a message; `None` for one of another kind.
pub(super) fn changed(fields: &[Answer]) -> Option<Changed<'_>> {
    match fields {
        [Answer::Bytes(kind), what] if kind == b"invalidate" => Some(match what {
            Answer::Array(keys) => Changed::Keys(keys.iter().filter_map(bytes).collect()),
            // The whole database was flushed.
            _ => Changed::Everything,
        }),
        _ => None,
    }
}

/// The string of an answer.
pub(super) fn bytes(answer: &Answer) -> Option<&[u8]> {
    match answer {
        Answer::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalidation_names_keys_or_means_all() {
        let text = |text: &str| Answer::Bytes(text.into());
        let keys = [text("invalidate"), Answer::Array(vec![text("a"), text("b")])];
        assert_eq!(changed(&keys), Some(Changed::Keys(vec![b"a", b"b"])));
        assert_eq!(changed(&[text("invalidate"), Answer::Other]), Some(Changed::Everything));
        assert_eq!(changed(&[text("message"), text("c"), text("g a@")]), None);
        assert_eq!(changed(&[]), None);
    }
}
