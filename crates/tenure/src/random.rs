//! Randomness from the operating system.

use std::cell::Cell;

thread_local! {
    /// Drawn and not yet given out; each number is given once.
    static DRAWN: Cell<([u128; 16], usize)> = const { Cell::new(([0; 16], 0)) };
}

/// 128 unguessable bits, for a token. Drawn sixteen at a time: a system call each would be a
/// noticeable part of an acquisition. (A forked child, which has the same ones, acquires nothing.)
///
/// # Errors
///
/// When the operating system gives none, which no supported system does once it is up.
pub(crate) fn token() -> Result<u128, getrandom::Error> {
    let (mut drawn, mut left) = DRAWN.get();
    if left == 0 {
        let mut bytes = [[0; 16]; 16];
        getrandom::fill(bytes.as_flattened_mut())?;
        drawn = bytes.map(u128::from_ne_bytes);
        left = drawn.len();
    }
    left -= 1;
    let token = drawn.get_mut(left).map(std::mem::take).unwrap_or_default();
    DRAWN.set((drawn, left));
    Ok(token)
}

/// A number to spread delays by. A constant one, should there be no randomness, is safe.
pub(crate) fn jitter() -> u64 {
    getrandom::u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_number_is_given_twice() {
        let tokens: BTreeSet<_> = (0..100).map(|_| token().unwrap()).collect();
        assert_eq!(tokens.len(), 100);
        assert!(!tokens.contains(&0));
    }
}
