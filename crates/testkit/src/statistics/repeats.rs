//! Tests whether one access to a block predicts the leaf of the next access to it.

use std::collections::HashMap;

use statrs::distribution::{Binomial, DiscreteCDF};

/// Two successive accesses to one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// The leaf of the earlier access.
    pub earlier: u64,
    /// The leaf of the later access.
    pub later: u64,
}

/// Returns pairs of successive accesses to one block in a sequence of accesses. Each access
/// consists of an address and the leaf that storage saw.
///
/// Each access belongs to at most one pair, so that the pairs are independent.
pub fn returns(accesses: impl IntoIterator<Item = (u64, u64)>) -> Vec<Return> {
    let mut unpaired = HashMap::new();
    let mut returns = Vec::new();
    for (address, later) in accesses {
        match unpaired.remove(&address) {
            Some(earlier) => returns.push(Return { earlier, later }),
            None => {
                unpaired.insert(address, later);
            }
        }
    }
    returns
}

/// Tests whether blocks repeat their leaf with the probability of chance, `1 / leaves`.
///
/// Exact: under independence the number of repeats is binomial. Two-sided.
///
/// # Panics
/// If `leaves` is 0.
pub fn repeats(returns: &[Return], leaves: u64) -> f64 {
    assert!(leaves > 0, "a tree has at least one leaf");
    let repeated = returns.iter().filter(|pair| pair.earlier == pair.later).count() as u64;
    let chance = Binomial::new(1.0 / leaves as f64, returns.len() as u64)
        .expect("1 / leaves is a probability");
    let at_least = if repeated == 0 { 1.0 } else { chance.sf(repeated - 1) };
    (2.0 * chance.cdf(repeated).min(at_least)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tests::draws;

    #[test]
    fn returns_pair_accesses_to_one_block() {
        let found = returns([(1, 10), (2, 20), (1, 11), (1, 12), (3, 30), (2, 20)]);
        let pairs: Vec<_> = found.iter().map(|pair| (pair.earlier, pair.later)).collect();
        assert_eq!(pairs, [(10, 11), (20, 20)]);
    }

    #[test]
    fn known_value() {
        // Two of two repeat, at one in four: 1/16, twice.
        let always = [Return { earlier: 1, later: 1 }; 2];
        assert!((repeats(&always, 4) - 0.125).abs() < 1e-12);
    }

    #[test]
    fn fair_draws_pass_and_a_block_that_sometimes_stays_is_noticed() {
        let coins = draws(1, 64);
        let fair = returns(coins.iter().map(|leaf| (0, *leaf)));
        assert!(repeats(&fair, 64) > 1e-3);
        let mut leaf = 0;
        let staying = coins.windows(2).map(|pair| {
            leaf = if pair[0] % 16 == 0 { leaf } else { pair[1] };
            (0, leaf)
        });
        assert!(repeats(&returns(staying), 64) < 1e-9);
    }
}
