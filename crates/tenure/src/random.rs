//! Randomness from the operating system.

/// 128 unguessable bits, for a token.
///
/// # Errors
///
/// When the operating system gives none, which no supported system does once it is up.
pub(crate) fn token() -> Result<u128, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// A number to spread delays by. A constant one, should there be no randomness, is safe.
pub(crate) fn jitter() -> u64 {
    getrandom::u64().unwrap_or(0)
}
