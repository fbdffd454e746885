//! Whether counts are as even as chance has it: Pearson's chi-square test.

use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Leaves are counted in so many runs of one length, or fewer.
pub(super) const BINS_MAX: u64 = 16;

/// The chi-square distribution is trusted if so many are expected in each bin, or more.
const EXPECTED_MIN: u64 = 20;

/// Chance alone makes so rare a view once in a hundred times. That is worth a look, and no proof.
const RARE: f64 = 1e-2;

/// Chance alone does not make so rare a view in a lifetime of looking at some.
const NEVER: f64 = 1e-6;

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Uniformity {
    /// The counts that were tested.
    pub(super) bins: Vec<u64>,
    pub(super) chi_square: f64,
    pub(super) degrees_of_freedom: usize,
    /// How often uniform leaves look at least as suspicious, too uneven or too even.
    pub(super) p: f64,
    is_uneven: bool,
}

impl Uniformity {
    /// Tests counts, of a power of two of bins. Where they are too few, neighbours are taken together; none if two bins
    /// are still too many.
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

    /// What the p-value says, in a word for programs.
    pub(super) fn verdict(&self) -> &'static str {
        match (self.p, self.is_uneven) {
            (p, _) if p >= RARE => "uniform",
            (p, _) if p >= NEVER => "unusual",
            (_, true) => "too_uneven",
            (_, false) => "too_even",
        }
    }

    /// The same in a sentence.
    pub(super) fn words(&self) -> String {
        let one_in = || format!("{:.0}", 1.0 / self.p);
        match self.verdict() {
            "uniform" => "uniform, as far as this test can tell".into(),
            "unusual" => format!(
                "unusual: of {} views of uniform leaves, one looks so. Record another",
                one_in()
            ),
            "too_uneven" => {
                "NOT uniform: some leaves come far more often than others. Storage can learn from that".into()
            }
            _ => {
                "NOT drawn at random: leaves come more evenly than chance would have it. Storage can learn from that"
                    .into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // 2 · 10² / 50 = 4 with one degree of freedom; the nearer tail twice.
        let tested = Uniformity::of(&[60, 40]).unwrap();
        assert_eq!((tested.chi_square, tested.degrees_of_freedom), (4.0, 1));
        assert!((tested.p - 2.0 * 0.045_500).abs() < 1e-5, "{tested:?}");
        assert_eq!(tested.verdict(), "uniform");
    }

    #[test]
    fn what_chance_does_not_make_is_said() {
        let verdict = |counts: &[u64]| Uniformity::of(counts).map(|tested| tested.verdict());
        assert_eq!(verdict(&[1000, 1000, 1000, 700]), Some("too_uneven"));
        assert_eq!(verdict(&[10_000; 16]), Some("too_even"));
        assert_eq!(verdict(&[500, 400]), Some("unusual"));
        assert_eq!(verdict(&[2, 1, 3, 2]), None, "too few to tell");
        assert_eq!(verdict(&[0; 16]), None);
        assert_eq!(verdict(&[]), None);
        // As few as that are taken together.
        assert_eq!(Uniformity::of(&[12, 13, 11, 12]).unwrap().bins, [25, 23]);
    }
}
