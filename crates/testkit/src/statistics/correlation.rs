//! Correlation of consecutive values.

use statrs::distribution::{ContinuousCDF, Normal};

/// Tests whether values and their successors are uncorrelated (Knuth, TAOCP 3.3.2 K). Finds a drift
/// or an order that is too weak to show in a chi-squared test.
///
/// Under independence, and for 1000 values or more, the lag-1 correlation is close to normal with
/// variance `1/n`. Two-sided. If all values are equal, the result is 0, although they have no
/// correlation.
///
/// # Panics
/// With fewer than 1000 values.
pub fn serial_correlation(values: &[u64]) -> f64 {
    assert!(values.len() >= 1000, "{} values are too few, 1000 are needed", values.len());
    let n = values.len() as f64;
    let mean = values.iter().map(|value| *value as f64).sum::<f64>() / n;
    let centred: Vec<f64> = values.iter().map(|value| *value as f64 - mean).collect();
    let variance: f64 = centred.iter().map(|value| value * value).sum();
    if variance == 0.0 {
        return 0.0;
    }
    let covariance: f64 = centred.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let deviations = covariance / variance * n.sqrt();
    2.0 * Normal::standard().sf(deviations.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tests::draws;

    #[test]
    fn known_value() {
        // 0, 1, 0, 1, …: the correlation is -1 except at the ends, so z is about -√1000.
        let alternating: Vec<u64> = (0..1000).map(|i| i % 2).collect();
        assert!(serial_correlation(&alternating) < 1e-200);
        assert_eq!(serial_correlation(&[7; 1000]), 0.0);
    }

    #[test]
    fn fair_draws_pass_and_a_moving_average_is_noticed() {
        let coins = draws(1, 1024);
        assert!(serial_correlation(&coins) > 1e-3);
        let average: Vec<u64> = coins.windows(2).map(|pair| pair[0] + pair[1] / 4).collect();
        assert!(serial_correlation(&average) < 1e-9);
    }
}
