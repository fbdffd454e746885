//! Pearson's chi-squared tests.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::{EXPECTED_MIN, histogram};

/// Tests whether all cells are equally likely: goodness of fit.
///
/// Two-sided: counts that are *too* even, as from leaves taken in rotation, are as suspicious as
/// uneven ones.
///
/// Assumes independent samples: also check [`super::serial_correlation`] and
/// [`uniformity_of_pairs`].
///
/// # Panics
/// With fewer than two cells, or too few samples (see [`EXPECTED_MIN`]).
pub fn uniformity(counts: &[u64]) -> f64 {
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    check_expected(expected);
    let statistic = counts.iter().map(|count| deviation(*count, expected)).sum();
    two_sided(statistic, counts.len() - 1)
}

/// Tests whether consecutive values are uniform *and* independent: the serial test (Knuth, TAOCP
/// 3.3.2 B).
///
/// Sorts each value of a pair into one of `bins` bins, and tests the `bins²` cells for uniformity.
/// The values are below `range`, which is a multiple of `bins`. The pairs must not overlap, so that
/// they are independent. Two-sided.
///
/// # Panics
/// With fewer than two bins, more bins than `range`, or too few samples for the number of cells
/// (see [`EXPECTED_MIN`]), or if a value is too large.
pub fn uniformity_of_pairs(
    pairs: impl IntoIterator<Item = (u64, u64)>,
    range: u64,
    bins: u64,
) -> f64 {
    let width = range / bins;
    let cells = pairs.into_iter().map(|(first, second)| first / width * bins + second / width);
    uniformity(&histogram(cells, bins * bins, bins * bins))
}

/// The two-sample test: tests whether two samples come from the same, unknown distribution.
///
/// One-sided: good agreement of two independent samples is not suspicious.
///
/// # Panics
/// In the cases of [`contingency`].
pub fn homogeneity(a: &[u64], b: &[u64]) -> f64 {
    contingency(&[a, b])
}

/// Tests whether the column of a sample is independent of its row, given a table of counts.
/// One-sided. Empty columns are ignored.
///
/// # Panics
/// If rows differ in length, fewer than two rows or columns have samples, or samples are too few
/// (see [`EXPECTED_MIN`]).
pub fn contingency(rows: &[impl AsRef<[u64]>]) -> f64 {
    let columns = rows[0].as_ref().len();
    let column_sums: Vec<u64> =
        (0..columns).map(|column| rows.iter().map(|row| row.as_ref()[column]).sum()).collect();
    let total: u64 = column_sums.iter().sum();
    let mut statistic = 0.0;
    for row in rows.iter().map(AsRef::as_ref) {
        assert_eq!(row.len(), columns, "rows must have the same length");
        let row_sum: u64 = row.iter().sum();
        for (count, column_sum) in row.iter().zip(&column_sums).filter(|(_, sum)| **sum > 0) {
            let expected = row_sum as f64 * *column_sum as f64 / total as f64;
            check_expected(expected);
            statistic += deviation(*count, expected);
        }
    }
    let used_columns = column_sums.iter().filter(|sum| **sum > 0).count();
    chi_squared((rows.len() - 1) * (used_columns - 1)).sf(statistic)
}

fn deviation(count: u64, expected: f64) -> f64 {
    (count as f64 - expected).powi(2) / expected
}

fn two_sided(statistic: f64, degrees_of_freedom: usize) -> f64 {
    let distribution = chi_squared(degrees_of_freedom);
    let tail = distribution.cdf(statistic).min(distribution.sf(statistic));
    (2.0 * tail).min(1.0)
}

fn chi_squared(degrees_of_freedom: usize) -> ChiSquared {
    ChiSquared::new(degrees_of_freedom as f64).expect("a test needs at least two cells")
}

fn check_expected(expected: f64) {
    assert!(
        expected >= EXPECTED_MIN,
        "a cell expects {expected:.1} samples, but {EXPECTED_MIN} are needed: take more samples or \
         fewer bins"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tests::{SAMPLES, draws};

    #[test]
    fn known_values() {
        // Statistic 4 · 5² / 25 = 4 with 1 degree of freedom.
        let p = contingency(&[[30, 20], [20, 30]]);
        assert!((p - 0.045_500).abs() < 1e-5, "{p}");
        // Statistic 2 · 10² / 50 = 4 with 1 degree of freedom, two-sided.
        let p = uniformity(&[60, 40]);
        assert!((p - 2.0 * 0.045_500).abs() < 1e-5, "{p}");
        // Statistic 0 with 3 degrees of freedom: perfectly even.
        assert!(uniformity(&[100, 100, 100, 100]) < 1e-9);
        // Empty columns are ignored.
        assert_eq!(contingency(&[[30, 0, 20], [20, 0, 30]]), contingency(&[[30, 20], [20, 30]]));
    }

    #[test]
    fn fair_draws_pass() {
        let (a, b) = (draws(1, 64), draws(2, 64));
        assert!(uniformity(&histogram(a.iter().copied(), 64, 64)) > 1e-3);
        let pairs = a.iter().copied().zip(b.iter().copied());
        assert!(uniformity_of_pairs(pairs, 64, 8) > 1e-3);
        let counts = [a, b].map(|draws| histogram(draws, 64, 64));
        assert!(homogeneity(&counts[0], &counts[1]) > 1e-3);
    }

    #[test]
    fn a_leaf_that_is_never_drawn_is_noticed() {
        let counts = histogram(draws(3, 63), 64, 64);
        assert!(uniformity(&counts) < 1e-9);
        assert!(homogeneity(&counts, &histogram(draws(4, 64), 64, 64)) < 1e-9);
    }

    #[test]
    fn leaves_taken_in_rotation_are_noticed() {
        let dealt = (0..SAMPLES as u64).map(|i| i * 37 % 64);
        assert!(uniformity(&histogram(dealt, 64, 64)) < 1e-9);
    }

    #[test]
    fn a_value_that_depends_on_the_previous_one_is_noticed() {
        let coins = draws(5, 64);
        // One in eight values repeats the one before.
        let leaning = coins.windows(3).map(|draws| match draws[0] % 8 {
            0 => (draws[1], draws[1]),
            _ => (draws[1], draws[2]),
        });
        assert!(uniformity_of_pairs(leaning, 64, 8) < 1e-9);
    }

    #[test]
    #[should_panic = "are needed"]
    fn too_few_samples_are_refused() {
        uniformity(&[3, 4, 5]);
    }
}
