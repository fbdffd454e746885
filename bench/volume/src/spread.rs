//! The spread of values over rounds.

/// The minimum, median and maximum of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    /// Returns the spread of `values`, which must not be empty.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<_> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
        Self { min: sorted[0], median, max: sorted[count - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let spread = |values: &[f64]| Spread::from_values(values.iter().copied());
        assert_eq!(spread(&[3.0, 1.0, 9.0]), Spread { min: 1.0, median: 3.0, max: 9.0 });
        assert_eq!(spread(&[4.0, 2.0]).median, 3.0);
        assert_eq!(spread(&[4.0]).median, 4.0);
    }
}
