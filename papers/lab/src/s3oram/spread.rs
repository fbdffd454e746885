//! Mean and spread of measurements.

use serde::{Deserialize, Serialize};

/// Statistics of some measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The number of measurements.
    pub count: usize,
    /// The mean of the measurements.
    pub mean: f64,
    /// The standard deviation of the measurements.
    pub deviation: f64,
    /// The median of the measurements.
    pub median: f64,
    /// The minimum of the measurements.
    pub least: f64,
    /// The maximum of the measurements.
    pub most: f64,
}

impl Spread {
    /// The statistics of `values`; zeros if there are none.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (values.first(), values.last()) else {
            return Self::default();
        };
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            count,
            mean,
            deviation: (squares / (count.max(2) - 1) as f64).sqrt(),
            median: (values[(count - 1) / 2] + values[count / 2]) / 2.0,
            least: *least,
            most: *most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_matches_the_textbook() {
        let spread = Spread::from_values([4.0, 1.0, 3.0, 8.0]);
        let expected = Spread {
            count: 4,
            mean: 4.0,
            deviation: (26f64 / 3.0).sqrt(),
            median: 3.5,
            least: 1.0,
            most: 8.0,
        };
        assert_eq!(spread, expected);
        assert_eq!(Spread::from_values([2.0]).median, 2.0);
        assert_eq!(Spread::from_values([]), Spread::default());
    }
}
