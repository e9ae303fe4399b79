//! The marker as it stands on a server: nine words, so that `redis-cli GET` shows it.

use std::fmt;

use super::{Marker, MarkerCause};

impl Marker {
    /// Reads a marker; `None` for what is none.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split(' ');
        let mut word = || words.next();
        let (database, replid) = (whole(word()?)?, hex(word()?)?);
        let (yield_ms, longest_ms, floor_ms) = (whole(word()?)?, whole(word()?)?, whole(word()?)?);
        let cause = match word()? {
            "new" => MarkerCause::New,
            "changed" => MarkerCause::Changed,
            _ => return None,
        };
        let run_id = hex(word()?)?;
        let (since_ms, client_since_ms) = (whole(word()?)?, whole(word()?)?);
        let marker = Self {
            database,
            replid,
            yield_ms,
            longest_ms,
            floor_ms,
            cause,
            run_id,
            since_ms,
            client_since_ms,
        };
        word().is_none().then_some(marker)
    }
}

/// Whether the first words of a marker say that a server of this identity is open for this span:
/// mostly they do, and scripts read no further.
pub(super) fn is_open(text: &[u8], database: u64, replid: &str, span_ms: u64) -> bool {
    let first = || {
        let mut words = text.split(|&b| b == b' ');
        let mut word = || std::str::from_utf8(words.next()?).ok();
        let is_known = whole(word()?)? == database && word()? == replid;
        let is_open = span_ms <= whole(word()?)? && span_ms <= whole(word()?)?;
        // A word that ends with the text may have been cut off.
        (is_known && is_open && words.next().is_some()).then_some(())
    };
    first().is_some()
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, replid, yield_ms, longest_ms, floor_ms, run_id, .. } = self;
        let Self { since_ms, client_since_ms, .. } = self;
        let cause = match self.cause {
            MarkerCause::New => "new",
            MarkerCause::Changed => "changed",
        };
        write!(f, "{database} {replid} {yield_ms} {longest_ms} {floor_ms} {cause} {run_id} ")?;
        write!(f, "{since_ms} {client_since_ms}")
    }
}

/// Digits only, and few enough for a double to hold them all.
fn whole(word: &str) -> Option<u64> {
    let is_number = (1..=16).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
    word.parse().ok().filter(|number| is_number && *number < 1 << 53)
}

fn hex(word: &str) -> Option<String> {
    let is_hex = !word.is_empty() && word.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| word.to_owned())
}
