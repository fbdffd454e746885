//! The multiplication protocol of Gennaro, Rabin and Rabin (Protocol 1 of the paper). Shares of a
//! product lie on a polynomial of degree 2*t* that is not random. The servers turn them into shares
//! of the same secret on a random polynomial of degree *t*.
//!
//! Each of 2*t* + 1 servers, the *dealers*, shares its share of the product among all servers. Each
//! server adds the shares that it received, each multiplied by a weight. With these weights, a
//! secret is recovered from the dealers' shares. The weights are the first row of the inverse of
//! the dealers' Vandermonde matrix.

use rand_core::CryptoRng;

use crate::field::Field;
use crate::sharing::{Parties, Share, recover, share};

/// Steps 2 and 3: creates the share that `dealer` sends to each server, itself included, in the
/// order of the servers.
///
/// The *t* servers after the dealer receive seeds. If all servers deal, each receives the same
/// number of seeds.
pub fn reshare<F: Field>(
    parties: Parties,
    dealer: u8,
    product: &[F::Element],
    coins: &mut dyn CryptoRng,
) -> Vec<Share<F::Element>> {
    // Protocol 1, step 3: share the share of the product.
    share::<F>(parties, product, dealer.into(), coins)
}

/// Step 6: computes the new share from the shares of 2*t* + 1 `dealers`. All servers must use the
/// same dealers, or their new shares lie on different polynomials. `None` if there are no shares,
/// not exactly one share for each dealer, a dealer twice, or shares of different lengths.
pub fn reduce<F: Field>(dealers: &[u8], dealt: &[&[F::Element]]) -> Option<Vec<F::Element>> {
    // Protocol 1, step 6: the sum of the shares, weighted with the first row of the inverse.
    recover::<F>(dealers, dealt)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::field::tests::{drawn, over_all_fields};
    use crate::sharing::tests::{all_parties, shared};
    use crate::sharing::weights;

    /// Computes the first row of the inverse of the paper's matrix (4), by Gaussian elimination.
    fn first_row_of_the_inverse<F: Field>(dealers: &[u8]) -> Vec<F::Element> {
        let size = dealers.len();
        // Solve row · V = (1, 0, …). The columns of V are the equations.
        let mut equations: Vec<Vec<F::Element>> = (0..size)
            .map(|power| {
                let value = |dealer: &u8| {
                    (0..power).fold(F::ONE, |value, _| F::multiply(value, F::place(*dealer)))
                };
                let right = if power == 0 { F::ONE } else { F::ZERO };
                dealers.iter().map(value).chain([right]).collect()
            })
            .collect();
        for i in 0..size {
            let pivot = (i..size).find(|row| equations[*row][i] != F::ZERO).unwrap();
            equations.swap(i, pivot);
            let scale = F::inverse(equations[i][i]).unwrap();
            equations[i].iter_mut().for_each(|cell| *cell = F::multiply(*cell, scale));
            let row = equations[i].clone();
            for other in (0..size).filter(|other| *other != i) {
                let factor = equations[other][i];
                for (cell, of_row) in equations[other].iter_mut().zip(&row) {
                    *cell = F::subtract(*cell, F::multiply(factor, *of_row));
                }
            }
        }
        equations.iter().map(|equation| equation[size]).collect()
    }

    fn weights_match_vandermonde<F: Field>() {
        for dealers in [&[1, 2, 3][..], &[1, 3, 5], &[2, 3, 4, 6, 7], &[1, 2, 3, 4, 5, 6, 7]] {
            assert_eq!(weights::<F>(dealers, 0), first_row_of_the_inverse::<F>(dealers));
        }
    }

    #[test]
    fn weights_are_the_first_row_of_the_inverse_of_vandermonde() {
        over_all_fields!(weights_match_vandermonde);
        use crate::field::Mersenne61;
        let minus = |a: u64| Mersenne61::subtract(0, a);
        assert_eq!(weights::<Mersenne61>(&[1, 2, 3], 0), [3, minus(3), 1]);
        assert_eq!(weights::<Mersenne61>(&[1, 2, 3, 4, 5], 0), [5, minus(10), 10, minus(5), 1]);
    }

    /// Runs Protocol 1 among all servers, of which `dealers` deal.
    fn multiplied<F: Field>(
        parties: Parties,
        dealers: &[u8],
        a: &[Vec<F::Element>],
        b: &[Vec<F::Element>],
        coins: &mut StdRng,
    ) -> Vec<Vec<F::Element>> {
        let length = a[0].len();
        let dealt: Vec<Vec<Vec<F::Element>>> = dealers
            .iter()
            .map(|dealer| {
                let i = usize::from(*dealer) - 1;
                let product: Vec<_> =
                    a[i].iter().zip(&b[i]).map(|(a, b)| F::multiply(*a, *b)).collect();
                let shares = reshare::<F>(parties, *dealer, &product, coins);
                shares.into_iter().map(|it| it.into_elements::<F>(length).unwrap()).collect()
            })
            .collect();
        let of_server = |i: usize| {
            let got: Vec<_> = dealt.iter().map(|dealt| &dealt[i][..]).collect();
            reduce::<F>(dealers, &got).unwrap()
        };
        (0..parties.servers()).map(of_server).collect()
    }

    fn products_come_out_of_degree_t<F: Field>() {
        let mut coins = StdRng::seed_from_u64(1);
        for parties in all_parties() {
            let (a, b) = (drawn::<F>(1, 6), drawn::<F>(2, 6));
            let expected: Vec<_> = a.iter().zip(&b).map(|(a, b)| F::multiply(*a, *b)).collect();
            let (of_a, of_b) = (shared::<F>(parties, &a, 1), shared::<F>(parties, &b, 2));
            let last = parties.servers() as u8;
            let first_dealers: Vec<u8> = parties.numbers().take(parties.for_product()).collect();
            let last_dealers: Vec<u8> = (1..=last).rev().take(parties.for_product()).collect();
            for dealers in [first_dealers, last_dealers] {
                let product = multiplied::<F>(parties, &dealers, &of_a, &of_b, &mut coins);
                // Any t + 1 shares recover the product: its degree is t again. So a third factor
                // can follow.
                for first in 1..=last - parties.colluding() as u8 {
                    let numbers: Vec<u8> = (first..=first + parties.colluding() as u8).collect();
                    let shares: Vec<_> =
                        numbers.iter().map(|n| &product[usize::from(*n) - 1][..]).collect();
                    assert_eq!(recover::<F>(&numbers, &shares).unwrap(), expected);
                }
                let again = multiplied::<F>(parties, &dealers, &product, &of_a, &mut coins);
                let shares: Vec<_> =
                    again.iter().take(parties.colluding() + 1).map(Vec::as_slice).collect();
                let numbers: Vec<u8> = parties.numbers().take(shares.len()).collect();
                let thrice: Vec<_> =
                    expected.iter().zip(&a).map(|(x, a)| F::multiply(*x, *a)).collect();
                assert_eq!(recover::<F>(&numbers, &shares).unwrap(), thrice);
            }
        }
    }

    #[test]
    fn servers_multiply_and_reduce_the_degree_to_t() {
        over_all_fields!(products_come_out_of_degree_t);
    }
}
