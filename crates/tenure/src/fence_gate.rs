//! The resource's side of fencing.

use std::sync::{Mutex, PoisonError};

use tenure_core::{FencingToken, Token};

/// A script for resources that live in Redis: sets a value unless the number is stale.
///
/// `KEYS` 1 the resource, 2 where its largest number is kept, with a digest of the token; `ARGV` 1
/// the fencing number, 2 the token, 3 the value. Replies 1 when the value was set, 0 when the
/// number was stale.
pub const FENCED_SET: &str = include_str!("fenced_set.lua");

/// Lets a resource refuse holders whose lease has ended: it remembers the largest number it saw.
///
/// A holder that was paused past its lease does not know it. The next holder has a larger number,
/// so once the resource has seen that, it can refuse the smaller one. Show it the number **before
/// the first read**, not only before the write. Otherwise a stale write can slip in between the new
/// holder's read and its write.
///
/// This gate keeps the number in memory, for a resource that is one process. `docs/fencing.md` has
/// the same check in SQL, and [`FENCED_SET`] in Redis.
///
/// ```
/// # let client = tenure::blocking::Client::connect("memory://")?;
/// # let lock = client.lock("stock");
/// let gate = tenure::FenceGate::new();
/// let early = lock.acquire()?;
/// gate.admit(early.fencing_token(), early.token())?;
/// let later = lock.steal()?;
/// gate.admit(later.fencing_token(), later.token())?;
/// assert!(gate.admit(early.fencing_token(), early.token()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct FenceGate {
    largest: Mutex<Option<(FencingToken, Token)>>,
}

impl FenceGate {
    /// A gate that has seen no number yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { largest: Mutex::new(None) }
    }

    /// Admits a holder, unless a larger number was admitted before.
    ///
    /// The same holder is admitted again. Two holders have the same number only if a server lost
    /// its counter and its clock was stepped back; then only the first is admitted.
    ///
    /// # Errors
    ///
    /// [`StaleToken`] if the number is stale: the holder's lease has ended.
    pub fn admit(&self, number: FencingToken, token: &Token) -> Result<(), StaleToken> {
        let mut largest = self.largest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*largest {
            Some((seen, by)) if number < *seen || (number == *seen && token != by) => {
                Err(StaleToken { number, seen: *seen })
            }
            _ => {
                *largest = Some((number, token.clone()));
                Ok(())
            }
        }
    }
}

/// The resource has admitted a larger number: this holder's lease has ended.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fencing number {number} is stale: {seen} was here before")]
pub struct StaleToken {
    /// The refused number.
    pub number: FencingToken,
    /// The largest number seen.
    pub seen: FencingToken,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_numbers_and_equal_ones_of_other_holders_are_refused() {
        let token = |hex: &str| -> Token { format!("{}@", hex.repeat(32)).parse().unwrap() };
        let number = |n| FencingToken::new(n).unwrap();
        let gate = FenceGate::new();
        assert_eq!(gate.admit(number(5), &token("a")), Ok(()));
        assert_eq!(gate.admit(number(5), &token("a")), Ok(()));
        assert!(gate.admit(number(5), &token("b")).is_err());
        assert_eq!(gate.admit(number(6), &token("b")), Ok(()));
        let stale = gate.admit(number(5), &token("a")).unwrap_err();
        assert_eq!((stale.number, stale.seen), (number(5), number(6)));
    }
}
