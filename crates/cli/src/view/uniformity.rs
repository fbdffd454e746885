//! Tests whether counts are uniform: Pearson's chi-square test.

use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Maximum number of equally long runs in which leaves are counted.
pub(super) const BINS_MAX: u64 = 16;

/// Minimum expected count per bin, for which the chi-square distribution is a good approximation.
const EXPECTED_MIN: u64 = 20;

/// A lower p-value is unusual: one in a hundred views with uniform leaves has one. It is a reason
/// to record another view, but no proof.
const RARE: f64 = 1e-2;

/// A lower p-value counts as proof that leaves are not uniform: only one in a million views with
/// uniform leaves has one.
const NEVER: f64 = 1e-6;

/// The result of a test.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Uniformity {
    /// The counts that were tested.
    pub(super) bins: Vec<u64>,
    pub(super) chi_square: f64,
    pub(super) degrees_of_freedom: usize,
    /// The p-value: the probability that counts of uniform leaves deviate at least as much, by
    /// being too uneven or too even.
    pub(super) p: f64,
    is_uneven: bool,
}

impl Uniformity {
    /// Tests the counts in bins. The number of bins must be a power of two. Merges pairs of
    /// neighbouring bins while the expected count of a bin is below [`EXPECTED_MIN`]. `None` if
    /// fewer than two bins remain.
    pub(super) fn of(counts: &[u64]) -> Option<Self> {
        let total: u64 = counts.iter().sum();
        let mut bins = counts.to_vec();
        while bins.len() > 1 && total / (bins.len() as u64) < EXPECTED_MIN {
            bins = bins.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        if bins.len() < 2 {
            return None;
        }
        let expected = total as f64 / bins.len() as f64;
        let deviation = |count: &u64| (*count as f64 - expected).powi(2) / expected;
        let chi_square = bins.iter().map(deviation).sum();
        let degrees_of_freedom = bins.len() - 1;
        let distribution = ChiSquared::new(degrees_of_freedom as f64).ok()?;
        let (more_even, less_even) = (distribution.cdf(chi_square), distribution.sf(chi_square));
        let p = (2.0 * more_even.min(less_even)).min(1.0);
        Some(Self { bins, chi_square, degrees_of_freedom, p, is_uneven: less_even < more_even })
    }

    /// The meaning of the p-value, as a word for programs.
    pub(super) fn verdict(&self) -> &'static str {
        match (self.p, self.is_uneven) {
            (p, _) if p >= RARE => "uniform",
            (p, _) if p >= NEVER => "unusual",
            (_, true) => "too_uneven",
            (_, false) => "too_even",
        }
    }

    /// The meaning of the p-value, as a sentence.
    pub(super) fn words(&self) -> String {
        let one_in = || format!("{:.0}", 1.0 / self.p);
        match self.verdict() {
            "uniform" => "uniform, as far as this test can tell".into(),
            "unusual" => format!(
                "borderline: 1 in {} truly uniform views looks like this; record another and \
                 compare",
                one_in()
            ),
            "too_uneven" => {
                "NOT uniform: some leaves come far more often than others. Storage can learn from \
                 that"
                    .into()
            }
            _ => "NOT random: leaves come more evenly than by chance. Storage can learn from that"
                .into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // 2 · 10² / 50 = 4 with one degree of freedom; twice the nearer tail.
        let tested = Uniformity::of(&[60, 40]).unwrap();
        assert_eq!((tested.chi_square, tested.degrees_of_freedom), (4.0, 1));
        assert!((tested.p - 2.0 * 0.045_500).abs() < 1e-5, "{tested:?}");
        assert_eq!(tested.verdict(), "uniform");
    }

    #[test]
    fn improbable_counts_are_reported() {
        let verdict = |counts: &[u64]| Uniformity::of(counts).map(|tested| tested.verdict());
        assert_eq!(verdict(&[1000, 1000, 1000, 700]), Some("too_uneven"));
        assert_eq!(verdict(&[10_000; 16]), Some("too_even"));
        assert_eq!(verdict(&[500, 400]), Some("unusual"));
        assert_eq!(verdict(&[2, 1, 3, 2]), None, "too few to test");
        assert_eq!(verdict(&[0; 16]), None);
        assert_eq!(verdict(&[]), None);
        // Bins with too few counts are merged.
        assert_eq!(Uniformity::of(&[12, 13, 11, 12]).unwrap().bins, [25, 23]);
    }
}
