//! The numbers of one lock, in plain Rust: how they are given, kept, and agreed upon.

use super::{NodeTime, Row, Stored, StoredValue, held, holds, left, raise};
use crate::{
    Confirmation, FENCE_FLOOR_TTL, FenceFault, FencingToken, Reply, Token, Ttl, fence_ttl,
    is_far_ahead, least_number, next_number,
};

impl Row {
    /// The answer to an acquisition with a proposal.
    pub(super) fn voted(&self, at: NodeTime, reply: Reply) -> Reply {
        let last_number = self.last_number().ok().flatten();
        Reply::Voted { reply: Box::new(reply), last_number, wall_us: at.wall_us }
    }

    /// Raises the last number to this one if the token holds the lock.
    pub(super) fn confirm(
        &mut self,
        at: NodeTime,
        token: &Token,
        ttl: Ttl,
        number: FencingToken,
    ) -> Confirmation {
        match &self.lock {
            None => Confirmation::Gone,
            Some(stored) if holds(stored, token) => {
                match self.raise_number(at, number, fence_ttl(ttl)) {
                    Ok(number) => Confirmation::Ours(number),
                    Err(fault) => Confirmation::Faulty(fault),
                }
            }
            Some(stored) => Confirmation::Other(held(stored, at)),
        }
    }

    /// Raises the last number to that of a lease which its token gives up. A counter that cannot be
    /// read is left alone: the lock is released nevertheless.
    pub(super) fn agree(&mut self, at: NodeTime, token: &Token, number: Option<FencingToken>) {
        let is_ours = self.lock.as_ref().is_some_and(|stored| holds(stored, token));
        let Some(number) = number.filter(|_| is_ours) else { return };
        if let Ok(last) = self.last_number()
            && last.is_none_or(|last| last < number)
        {
            _ = self.raise_number(at, number, MIN_FENCE_MS);
        }
    }

    /// Raises the last number to this one, unless it is far ahead, and its TTL to this; returns the
    /// last number.
    fn raise_number(
        &mut self,
        at: NodeTime,
        number: FencingToken,
        ttl_ms: u64,
    ) -> Result<FencingToken, FenceFault> {
        let last = self.last_number()?;
        if is_far_ahead(number, last, at.wall_us) {
            return Err(FenceFault::Ahead);
        }
        let number = last.map_or(number, |last| last.max(number));
        let ends_ms = self.fence.as_ref().and_then(|stored| stored.ends_ms);
        let value = StoredValue::Bytes(number.to_string().into_bytes());
        self.fence = Some(Stored { value, ends_ms });
        raise(self.fence.as_mut(), at, ttl_ms);
        Ok(number)
    }

    pub(super) fn grant(
        &mut self,
        at: NodeTime,
        token: &Token,
        ttl: Ttl,
        proposal: Option<FencingToken>,
    ) -> Reply {
        match self.next_number(at, proposal) {
            Ok(number) => {
                self.set(at, token.as_bytes(), ttl, number);
                Reply::Granted(number)
            }
            Err(fault) => Reply::Faulty(fault),
        }
    }

    /// Fence first, then the lock. The number is known to be sound before anything is written.
    pub(super) fn set(&mut self, at: NodeTime, token: &[u8], ttl: Ttl, number: FencingToken) {
        self.fence = Some(Stored {
            value: StoredValue::Bytes(number.to_string().into_bytes()),
            ends_ms: Some(at.ttl_ms + fence_ttl(ttl)),
        });
        self.lock = Some(Stored {
            value: StoredValue::Bytes(token.to_vec()),
            ends_ms: Some(at.ttl_ms + ttl.as_millis()),
        });
    }

    /// Gives the lock at least this TTL, and its number a life beyond it.
    pub(super) fn raise(&mut self, at: NodeTime, ttl: Ttl) {
        raise(self.lock.as_mut(), at, ttl.as_millis());
        // Half of its life is soon enough, and saves most renewals the write.
        if 2 * left(self.fence.as_ref(), at) < fence_ttl(ttl) {
            raise(self.fence.as_mut(), at, fence_ttl(ttl));
        }
    }

    pub(super) fn next_number(
        &self,
        at: NodeTime,
        proposal: Option<FencingToken>,
    ) -> Result<FencingToken, FenceFault> {
        let last = self.last_number()?.map_or(0, FencingToken::get);
        next_number(last, least_number(proposal, at.wall_us))
    }

    pub(super) fn last_number(&self) -> Result<Option<FencingToken>, FenceFault> {
        let Some(stored) = &self.fence else { return Ok(None) };
        let StoredValue::Bytes(bytes) = &stored.value else { return Err(FenceFault::Type) };
        // Digits only, as scripts write them, and few enough for a double to hold them all.
        let is_short = (1..=16).contains(&bytes.len()) && !bytes.starts_with(b"0");
        let digits = is_short && bytes.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(bytes).ok().filter(|_| digits);
        let number = text.and_then(|text| text.parse().ok()).and_then(FencingToken::new);
        number.map(Some).ok_or(FenceFault::Value)
    }
}

/// The least life that a release gives a number.
#[expect(clippy::cast_possible_truncation, reason = "a day in milliseconds fits")]
const MIN_FENCE_MS: u64 = FENCE_FLOOR_TTL.as_millis() as u64;
