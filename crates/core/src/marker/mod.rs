//! Whether a server may have forgotten locks, as a client can see that meets it for the first time.
//!
//! Several servers exclude others only while each remembers whom it granted the lock. So each
//! carries a *marker*: one string without an end, which names the server's identity at the time of
//! writing. A server without its marker, or with the marker of another identity, may have lost
//! keys: it is *closed*, and its grants are no votes, until every lock that it may have forgotten
//! has ended by two clocks: the server's own and that of its clients.
//!
//! The rule was searched state by state in `crates/sim`, together with the simpler ones that fail.

#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use crate::{Drift, Ttl};

/// The key of the marker in each database of a server. No lock may have this name.
pub const MARKER_KEY: &[u8] = b"tenure:marker";

/// The longest span, 2^53 - 1 ms: scripts count in doubles. A marker that is written by hand is
/// open for locks of every TTL.
const EVERY_SPAN_MS: u64 = (1 << 53) - 1;

/// What a marker says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "all that the text says")]
pub struct Marker {
    /// The database that it was written in.
    pub database: u64,
    /// The server's `master_replid` then.
    pub replid: String,
    /// The longest span that has passed since then: a lock with at most this span may be granted.
    pub yield_ms: u64,
    /// The longest span that any client has named. It only rises.
    pub longest_ms: u64,
    /// The longest span that was named before it was closed: every lock needs at least this.
    pub floor_ms: u64,
    /// Why it was closed last.
    pub cause: MarkerCause,
    /// The server's `run_id` then.
    pub run_id: String,
    /// Since when it is closed, by the server's wall clock, in milliseconds since the epoch.
    pub since_ms: u64,
    /// Since when it is closed, by the wall clock of its clients.
    pub client_since_ms: u64,
}

/// Why a marker was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a marker was there or it was not")]
pub enum MarkerCause {
    /// There was no marker: the server is new, or it was emptied.
    New,
    /// There was a marker, of another identity: a restart, a replication, a swapped database.
    Changed,
}

/// What a server says of itself. A new `replid` comes with each start, with each promotion, and
/// when its first replica attaches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "what the rule compares")]
pub struct ServerIdentity {
    /// `master_replid` of `INFO replication`.
    pub replid: String,
    /// Whether `master_replid2` is other than zero: it was a replica, or continues another's data.
    pub has_second_replid: bool,
    /// `run_id` of `INFO server`.
    pub run_id: String,
}

/// What stands at the marker's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "what scripts distinguish")]
pub enum MarkerFound<'a> {
    /// No key.
    Nothing,
    /// A string.
    Text(&'a [u8]),
    /// A value of another type: no marker of ours, and it stays.
    OtherType,
}

/// What a client brings to the marker, with each request whose answer may count as a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the arguments of the scripts")]
pub struct MarkerCheck {
    /// So long any lock of this name may be held that the server has forgotten: the longest TTL
    /// that anybody takes it with, and the drift of its clock, in milliseconds.
    pub span_ms: u64,
    /// The client's wall clock, in milliseconds since the epoch.
    pub client_ms: u64,
    /// The database that the client has selected.
    pub database: u64,
    /// The server keeps its keys over a restart, as its address says.
    pub is_durable: bool,
    /// What may be written.
    pub mode: MarkerMode,
}

/// What a check may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "tests face all of them")]
pub enum MarkerMode {
    /// What the rule says.
    Check,
    /// Nothing: the answer is what a check would say now.
    Peek,
    /// An operator declares that a server without a marker has forgotten no lock: it is opened.
    Open,
}

/// Whether what a server grants or keeps counts as a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum Eligibility {
    /// It counts.
    Eligible,
    /// It counts from now on, since this very request has opened it by hand.
    Opened,
    /// It does not count.
    Closed(Closure),
}

/// Why a server is closed, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "every caller must face every answer")]
pub enum Closure {
    /// It may have forgotten locks; so long until they have ended.
    Forgetful(MarkerCause, Duration),
    /// It does not reveal its identity: `INFO` is refused inside scripts.
    Hidden,
    /// Something else than a marker stands at [`MARKER_KEY`], or it cannot be read.
    Unusable,
}

impl MarkerCheck {
    /// How long a lock may be held that a server has forgotten, for locks of at most this TTL.
    #[must_use]
    pub fn span(longest: Ttl) -> Duration {
        longest.get() + Drift::of(longest).get()
    }

    /// What a server of this identity, or of a hidden one, answers at `now_ms` by its own wall
    /// clock, and the text that it writes to the marker's key, if any.
    #[must_use]
    pub fn judge(
        &self,
        found: MarkerFound<'_>,
        server: Option<&ServerIdentity>,
        now_ms: u64,
    ) -> (Eligibility, Option<String>) {
        let text = match found {
            MarkerFound::OtherType => return (Eligibility::Closed(Closure::Unusable), None),
            MarkerFound::Text(text) => Some(text),
            MarkerFound::Nothing => None,
        };
        let Some(server) = server else { return (Eligibility::Closed(Closure::Hidden), None) };
        let is_open = |words| text::is_open(words, self.database, &server.replid, self.span_ms);
        if text.is_some_and(is_open) {
            return (Eligibility::Eligible, None);
        }
        let before = text.and_then(Marker::read);
        let mut marker = match before {
            Some(marker) if self.vouches(&marker, server) => {
                let (replid, run_id) = match marker.replid == server.replid {
                    true => (marker.replid, marker.run_id),
                    false => (server.replid.clone(), server.run_id.clone()),
                };
                Marker { replid, run_id, ..marker }
            }
            before => {
                let longest_ms = before.map_or(0, |marker| marker.longest_ms);
                let cause = if text.is_some() { MarkerCause::Changed } else { MarkerCause::New };
                Marker {
                    cause,
                    yield_ms: 0,
                    longest_ms,
                    floor_ms: longest_ms,
                    database: self.database,
                    replid: server.replid.clone(),
                    run_id: server.run_id.clone(),
                    since_ms: now_ms,
                    client_since_ms: self.client_ms,
                }
            }
        };
        let eligibility = self.open(&mut marker, now_ms);
        let written = marker.to_string();
        let is_written = self.mode != MarkerMode::Peek && text != Some(written.as_bytes());
        (eligibility, is_written.then_some(written))
    }

    /// Whether a marker says that this server has forgotten nothing since it was written.
    ///
    /// A restart of a durable server keeps the marker, and brings a new `run_id` and no second
    /// `replid`. Under the same `run_id` another `replid` means that it was a replica meanwhile.
    fn vouches(&self, marker: &Marker, server: &ServerIdentity) -> bool {
        let has_restarted = marker.run_id != server.run_id && !server.has_second_replid;
        marker.database == self.database
            && (marker.replid == server.replid || self.is_durable && has_restarted)
    }

    /// Opens a marker for this span, when enough time has passed by both clocks.
    fn open(&self, marker: &mut Marker, now_ms: u64) -> Eligibility {
        marker.longest_ms = marker.longest_ms.max(self.span_ms);
        if self.span_ms <= marker.yield_ms {
            return Eligibility::Eligible;
        }
        if self.mode == MarkerMode::Open && marker.cause == MarkerCause::New {
            marker.yield_ms = EVERY_SPAN_MS;
            return Eligibility::Opened;
        }
        let needed = self.span_ms.max(marker.floor_ms);
        // Nobody waits longer than that from its own first visit, wherever a clock stood before.
        marker.since_ms = marker.since_ms.min(now_ms);
        marker.client_since_ms = marker.client_since_ms.min(self.client_ms);
        let of_server = now_ms - marker.since_ms;
        let passed = of_server.min(self.client_ms - marker.client_since_ms);
        if passed >= needed {
            marker.yield_ms = needed;
            return Eligibility::Eligible;
        }
        let left = Duration::from_millis(needed - passed);
        Eligibility::Closed(Closure::Forgetful(marker.cause, left))
    }
}
