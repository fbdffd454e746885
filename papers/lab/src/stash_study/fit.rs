//! The exponential tail: a straight line through the logarithms of the survival function.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{SECURITY_BITS, Survival};

/// The bulk ends at the first `n` with `P(stash > n) <= 2^-12`. Beyond it, the observed tail is
/// straight. The bulk falls faster, so a fit that included it would give too small a bound.
pub(super) const BULK_ENDS_AT_BITS: f64 = 12.0;

/// The minimum number of samples above a point. Points with fewer are too uncertain to be fitted.
const SAMPLES_ABOVE_MIN: u64 = 100;

/// The minimum number of points for a line.
const POINTS_MIN: usize = 3;

const CONFIDENCE: f64 = 0.95;

/// The line `log2 P(stash > n) = intercept - bits_per_block * n`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TailLine {
    /// The value at `n = 0`, extrapolated from the tail.
    pub intercept: f64,
    /// The decrease in bits per additional block.
    pub bits_per_block: f64,
}

impl TailLine {
    /// The value of the line at `n`: `log2 P(stash > n)`.
    pub fn at(&self, n: f64) -> f64 {
        self.intercept - self.bits_per_block * n
    }

    /// The number `n` of blocks that is exceeded with probability `2^-bits`.
    pub fn blocks_for(&self, bits: f64) -> f64 {
        (self.intercept + bits) / self.bits_per_block
    }

    /// Fits a line by weighted least squares over `(n, log2 P, weight)`. `None` if there are too
    /// few points, or they do not fall.
    fn through(points: &[(f64, f64, f64)]) -> Option<Self> {
        if points.len() < POINTS_MIN {
            return None;
        }
        let weights: f64 = points.iter().map(|(_, _, w)| w).sum();
        let mean_n = points.iter().map(|(n, _, w)| n * w).sum::<f64>() / weights;
        let mean_y = points.iter().map(|(_, y, w)| y * w).sum::<f64>() / weights;
        let covariance: f64 = points.iter().map(|(n, y, w)| w * (n - mean_n) * (y - mean_y)).sum();
        let variance: f64 = points.iter().map(|(n, _, w)| w * (n - mean_n).powi(2)).sum();
        let bits_per_block = -covariance / variance;
        let line = Self { intercept: mean_y + bits_per_block * mean_n, bits_per_block };
        (bits_per_block > 0.0).then_some(line)
    }
}

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate from all runs together.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Applies the jackknife: `value` comes from all runs, `without[i]` from all but run `i`.
    ///
    /// Successive accesses are far from independent, so counts do not show their own uncertainty.
    /// Whole runs are independent.
    fn jackknife(value: f64, without: &[f64]) -> Self {
        let runs = without.len() as f64;
        let mean = without.iter().sum::<f64>() / runs;
        let squares: f64 = without.iter().map(|x| (x - mean).powi(2)).sum();
        let standard_error = ((runs - 1.0) / runs * squares).sqrt();
        let quantile = StudentsT::new(0.0, 1.0, runs - 1.0)
            .map_or(f64::NAN, |t| t.inverse_cdf(0.5 + CONFIDENCE / 2.0));
        let margin = quantile * standard_error;
        Self { value, low: value - margin, high: value + margin }
    }
}

/// The tail of one setup.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TailFit {
    /// The smallest number of blocks `n` that the fit uses.
    pub from_blocks: usize,
    /// The largest number of blocks `n` that the fit uses.
    pub to_blocks: usize,
    /// The line through the points from `from_blocks` to `to_blocks`.
    pub line: TailLine,
    /// The decrease in bits per additional block.
    pub bits_per_block: Estimate,
    /// The stash bound C that is exceeded with probability 2^-80. It is a real number; the bound in
    /// blocks is the next integer.
    pub stash_blocks_max: Estimate,
}

impl TailFit {
    /// Fits the histograms of independent runs beyond the bulk. `None` if the tail is too short.
    pub(crate) fn of_bulk(histograms: &[&[u64]]) -> Option<Self> {
        Self::fit(histograms, BULK_ENDS_AT_BITS)
    }

    /// Fits the histograms of independent runs, from the point where `P(stash > n)` falls to
    /// `2^-bulk_bits`. `None` if the tail is too short.
    pub(super) fn fit(histograms: &[&[u64]], bulk_bits: f64) -> Option<Self> {
        let survival = Survival::from_histograms(histograms.iter().copied());
        let mut reliable = survival
            .log2()
            .skip_while(|(_, log2)| *log2 > -bulk_bits)
            .map(|(n, _)| n)
            .take_while(|n| survival.above(*n) >= SAMPLES_ABOVE_MIN);
        let from_blocks = reliable.next()?;
        let to_blocks = reliable.last()?;
        let fit = |survival: &Survival| line_over(survival, from_blocks, to_blocks);

        let line = fit(&survival)?;
        let without = (0..histograms.len())
            .map(|left_out| {
                let others = histograms.iter().enumerate().filter(|(i, _)| *i != left_out);
                fit(&Survival::from_histograms(others.map(|(_, histogram)| *histogram)))
            })
            .collect::<Option<Vec<_>>>()?;
        let estimate = |figure: &dyn Fn(&TailLine) -> f64| {
            Estimate::jackknife(figure(&line), &without.iter().map(figure).collect::<Vec<_>>())
        };
        Some(Self {
            from_blocks,
            to_blocks,
            line,
            bits_per_block: estimate(&|line| line.bits_per_block),
            stash_blocks_max: estimate(&|line| line.blocks_for(SECURITY_BITS)),
        })
    }
}

/// Fits a line through the points from `from` to `to`. Each is weighted by its count, since the
/// variance of the logarithm of a count is inverse to the count.
fn line_over(survival: &Survival, from: usize, to: usize) -> Option<TailLine> {
    let points: Vec<_> = survival
        .log2()
        .filter(|(n, _)| (from..=to).contains(n))
        .map(|(n, log2)| (n as f64, log2, survival.above(n) as f64))
        .collect();
    TailLine::through(&points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// Draws independent samples of improbability in bits. A sample exceeds `b` with probability
    /// `2^-b`.
    fn draw(runs: u64, samples: usize) -> Vec<Vec<f64>> {
        let run = |seed| {
            let mut coins = StdRng::seed_from_u64(seed);
            (0..samples).map(|_| -(1.0 - coins.random::<f64>()).log2()).collect()
        };
        (0..runs).map(run).collect()
    }

    /// Converts samples from `draw` to samples with `P(X > n) = 2^-(start + bits_per_block n)`, and
    /// returns their histograms.
    fn geometric(drawn: &[Vec<f64>], start: f64, bits_per_block: f64) -> Vec<Vec<u64>> {
        let histogram = |drawn: &Vec<f64>| {
            let mut histogram = vec![0; 100];
            for bits in drawn {
                let n = ((bits - start) / bits_per_block).ceil().max(0.0);
                histogram[n as usize] += 1;
            }
            histogram
        };
        drawn.iter().map(histogram).collect()
    }

    fn fit(histograms: &[Vec<u64>], bulk_bits: f64) -> Option<TailFit> {
        TailFit::fit(&histograms.iter().map(Vec::as_slice).collect::<Vec<_>>(), bulk_bits)
    }

    #[test]
    fn a_geometric_tail_is_recovered() {
        let drawn = draw(10, 400_000);
        for bits_per_block in [0.6, 1.0, 1.5] {
            let fit = fit(&geometric(&drawn, 3.0, bits_per_block), 5.0).unwrap();
            let slope = fit.bits_per_block;
            assert!((slope.value / bits_per_block - 1.0).abs() < 0.02, "{fit:?}");
            assert!(slope.low < bits_per_block && bits_per_block < slope.high, "{fit:?}");
            let bound = 77.0 / bits_per_block;
            assert!((fit.stash_blocks_max.value / bound - 1.0).abs() < 0.02, "{fit:?}");
        }
    }

    #[test]
    fn an_exact_line_has_no_uncertainty() {
        let histogram: Vec<u64> = (0..20).map(|n| 1 << (40 - 2 * n)).collect();
        let fit = fit(&vec![histogram; 4], 6.0).unwrap();
        assert!((fit.bits_per_block.value - 2.0).abs() < 1e-3);
        assert!(fit.bits_per_block.high - fit.bits_per_block.low < 1e-9);
        assert!((fit.line.blocks_for(80.0) - 39.0).abs() < 0.1);
        assert!((fit.line.at(39.0) + 80.0).abs() < 0.1);
    }

    #[test]
    fn a_short_tail_gives_no_fit() {
        assert!(fit(&geometric(&draw(4, 1000), 0.0, 1.0), 12.0).is_none());
        assert!(fit(&vec![vec![1_000_000]; 4], 12.0).is_none());
        assert!(fit(&[], 12.0).is_none());
    }
}
