//! The distribution of the number of blocks left in a stash.

/// The survival function of a histogram.
pub struct Survival {
    /// `above[n]`: the number of samples above `n`. The last entry is 0.
    above: Vec<u64>,
    samples: u64,
}

impl Survival {
    /// Computes the survival function of all histograms together.
    pub fn from_histograms<'a>(histograms: impl Iterator<Item = &'a [u64]>) -> Self {
        let mut merged = Vec::new();
        for histogram in histograms {
            merged.resize(merged.len().max(histogram.len()), 0);
            for (sum, count) in merged.iter_mut().zip(histogram) {
                *sum += count;
            }
        }
        let samples = merged.iter().sum();
        let above = merged
            .iter()
            .scan(samples, |left, count| {
                *left -= count;
                Some(*left)
            })
            .collect();
        Self { above, samples }
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The number of samples above `n`.
    pub fn above(&self, n: usize) -> u64 {
        self.above.get(n).copied().unwrap_or(0)
    }

    /// The largest sample.
    pub fn peak(&self) -> usize {
        self.above.len().saturating_sub(1)
    }

    /// Pairs of `n` and `log2 P(sample > n)`, for each `n` with a larger sample.
    pub fn log2(&self) -> impl Iterator<Item = (usize, f64)> {
        let samples = self.samples as f64;
        (0..)
            .zip(&self.above)
            .take_while(|(_, above)| **above > 0)
            .map(move |(n, above)| (n, (*above as f64 / samples).log2()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_counts_larger_samples() {
        let survival = Survival::from_histograms([&[4, 2, 1][..], &[0, 0, 0, 1]].into_iter());
        assert_eq!((survival.samples(), survival.peak()), (8, 3));
        assert_eq!([0, 1, 2, 3, 9].map(|n| survival.above(n)), [4, 2, 1, 0, 0]);
        let points: Vec<_> = survival.log2().collect();
        assert_eq!(points, [(0, -1.0), (1, -2.0), (2, -3.0)]);
    }

    #[test]
    fn no_samples_give_no_points() {
        let survival = Survival::from_histograms(std::iter::empty());
        assert_eq!((survival.samples(), survival.peak(), survival.log2().count()), (0, 0, 0));
    }
}
