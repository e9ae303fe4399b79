//! Durations as people write them.

use std::time::Duration;

/// Reads a duration: a number, with a fraction if need be, and a unit. Without one it is seconds,
/// as for `flock` and `timeout`.
///
/// # Errors
///
/// What is wrong, for people.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let Some((_, nanos_per_unit)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(FORM.to_owned());
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return Err(FORM.to_owned());
    }
    // More places are below a nanosecond, in every unit that people use them with.
    let fraction = fraction.get(..MAX_PLACES).unwrap_or(fraction);
    let read = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<u128>().ok() };
    let scale = (0..fraction.len()).fold(1, |scale, _| scale * 10);
    let nanos = read(whole)
        .and_then(|whole| whole.checked_mul(*nanos_per_unit))
        .zip(read(fraction).map(|fraction| fraction * nanos_per_unit / scale))
        .and_then(|(whole, fraction)| whole.checked_add(fraction));
    let seconds = nanos.and_then(|nanos| u64::try_from(nanos / NANOS).ok());
    match (seconds, nanos.map(|nanos| u32::try_from(nanos % NANOS))) {
        (Some(seconds), Some(Ok(nanos))) => Ok(Duration::new(seconds, nanos)),
        _ => Err("longer than 2^64 seconds".to_owned()),
    }
}

/// Reads a TTL for a command: a duration of at least [`MIN_TTL`].
///
/// # Errors
///
/// What is wrong, for people.
pub(crate) fn parse_ttl(text: &str) -> Result<Duration, String> {
    let ttl = parse(text)?;
    if ttl < MIN_TTL {
        return Err(format!("a TTL of {ttl:?} is below the least for a command, {MIN_TTL:?}"));
    }
    Ok(ttl)
}

/// Below this there is no time to end a command that has lost its lock.
const MIN_TTL: Duration = Duration::from_millis(500);

/// Nanoseconds in a second.
const NANOS: u128 = 1_000_000_000;

/// Decimal places that count: a nanosecond in seconds.
const MAX_PLACES: usize = 9;

/// The units, in nanoseconds.
const UNITS: [(&str, u128); 6] = [
    ("", NANOS),
    ("ms", NANOS / 1_000),
    ("s", NANOS),
    ("m", 60 * NANOS),
    ("h", 3_600 * NANOS),
    ("d", 86_400 * NANOS),
];

/// What a duration looks like.
const FORM: &str = "a duration is a number of seconds, or a number with ms, s, m, h or d";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, ms) in [
            ("0", 0),
            ("30", 30_000),
            ("1.5", 1_500),
            (".5", 500),
            ("5.", 5_000),
            ("250ms", 250),
            ("2s", 2_000),
            ("1.5m", 90_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse("0.1234567891"), Ok(Duration::from_nanos(123_456_789)));
    }

    #[test]
    fn invalid_durations_are_refused() {
        for text in [
            "",
            ".",
            "s",
            "-1",
            "+1",
            "1e3",
            "inf",
            "NaN",
            "1.2.3",
            "0.719925474.5",
            "1 s",
            "5sec",
            "٣",
        ] {
            assert_eq!(parse(text), Err(FORM.to_owned()), "{text}");
        }
        for text in ["18446744073709551616", "99999999999999999999999999999999999999999h"] {
            assert!(parse(text).unwrap_err().contains("2^64"), "{text}");
        }
    }

    #[test]
    fn a_short_ttl_names_value_and_bound() {
        let error = parse_ttl("0.1").unwrap_err();
        assert!(error.contains("100ms") && error.contains("500ms"), "{error}");
        assert_eq!(parse_ttl("500ms"), Ok(MIN_TTL));
    }
}
