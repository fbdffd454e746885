//! Tests of randomness for views. Each returns a *p-value*: the probability that a view that hides
//! everything looks at least as suspicious. [`Verdicts`] turns p-values into a verdict with a
//! stated rate of false alarms.
//!
//! All tests here are asymptotic. They assume enough samples for the expected number in each cell
//! to be [`EXPECTED_MIN`] or more, and panic if there are fewer, because the p-value would be
//! wrong.

mod chi_squared;
mod complement;
mod correlation;
mod repeats;
mod verdicts;

pub use chi_squared::{contingency, homogeneity, uniformity, uniformity_of_pairs};
pub use complement::longest_complement;
pub use correlation::serial_correlation;
pub use repeats::{Return, repeats, returns};
pub use verdicts::Verdicts;

/// The smallest expected count of a cell for which the chi-squared approximation is trusted.
///
/// The textbook value of 5 is for p-values around 0.01. Verdicts here use far smaller p-values.
pub const EXPECTED_MIN: f64 = 20.0;

/// Counts `values`, which must be below `range`, in `bins` bins of equal size.
///
/// # Panics
/// If `bins` does not divide `range`, or a value is out of range.
pub fn histogram(values: impl IntoIterator<Item = u64>, range: u64, bins: u64) -> Vec<u64> {
    assert!(bins > 0 && range.is_multiple_of(bins), "{bins} bins do not divide a range of {range}");
    let mut counts = vec![0; bins as usize];
    for value in values {
        assert!(value < range, "{value} is not below {range}");
        counts[(value / (range / bins)) as usize] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    pub(super) const SAMPLES: usize = 20_000;

    /// Draws uniformly random numbers below `range`.
    pub(super) fn draws(seed: u64, range: u64) -> Vec<u64> {
        let mut coins = StdRng::seed_from_u64(seed);
        (0..SAMPLES).map(|_| coins.random_range(0..range)).collect()
    }

    #[test]
    fn bins_are_equal_runs_of_values() {
        assert_eq!(histogram([0, 1, 2, 3, 7, 7], 8, 4), [2, 2, 0, 2]);
    }
}
