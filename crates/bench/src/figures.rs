//! The little statistics that is needed.

/// The value below which this share of the values lies; zero without values.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into at most some thousands of values"
    )]
    let at = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or_default()
}

/// The value in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    quantile(&mut values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occur() {
        let mut values: Vec<f64> = (1..=101).rev().map(f64::from).collect();
        assert!((quantile(&mut values, 0.5) - 51.0).abs() < f64::EPSILON);
        assert!((quantile(&mut values, 0.99) - 100.0).abs() < f64::EPSILON);
        assert!((quantile(&mut [], 0.5)).abs() < f64::EPSILON);
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}
