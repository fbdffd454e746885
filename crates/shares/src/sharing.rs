//! Shamir's secret sharing (Algorithm 1 of the paper). The secret is the value at 0 of a random
//! polynomial, and each party receives the value at its own point. With degree *t*, any *t* shares
//! are uniform and independent of the secret, and any *t* + 1 recover it.
//!
//! *t* of the ℓ shares can be drawn instead of computed: together with the secret, *t* shares
//! determine the polynomial. So *t* parties receive a seed from which they draw their shares, and
//! the other shares are computed from these. No more than *t* shares can be drawn: *t* + 1 shares
//! of one secret are not independent. With three servers and *t* = 1, this saves a third of the
//! upload. The paper's secrecy then holds against attackers that cannot distinguish `ChaCha20` from
//! random.

use std::fmt;

use chacha20::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use zeroize::Zeroizing;

use crate::field::Field;

/// The number of servers, and the number of servers that may collude and still learn nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    servers: u8,
    colluding: u8,
}

/// The maximum number of servers.
pub const SERVERS_MAX: u8 = 7;

/// An unsupported number of servers or of colluding servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot use {servers} servers of which {colluding} may collude: choose {} to {SERVERS_MAX} \
     servers, and let at least 1 collude",
    2 * u16::from(*.colluding) + 1
)]
pub struct InvalidParties {
    servers: u8,
    colluding: u8,
}

impl Parties {
    /// Creates the parties: `servers` is the paper's ℓ, and `colluding` its *t*.
    ///
    /// # Errors
    /// If there are fewer than 2*t* + 1 servers or more than [`SERVERS_MAX`], or *t* is 0.
    pub fn new(servers: u8, colluding: u8) -> Result<Self, InvalidParties> {
        let is_sound = colluding >= 1
            && servers <= SERVERS_MAX
            && u16::from(servers) > 2 * u16::from(colluding);
        is_sound.then_some(Self { servers, colluding }).ok_or(InvalidParties { servers, colluding })
    }

    /// The number of servers: the paper's ℓ.
    pub fn servers(self) -> usize {
        self.servers.into()
    }

    /// The number of servers that may collude: the paper's *t*.
    pub fn colluding(self) -> usize {
        self.colluding.into()
    }

    /// The number of shares that recover a product: 2*t* + 1.
    pub fn for_product(self) -> usize {
        2 * self.colluding() + 1
    }

    /// Whether `numbers` are numbers of different servers.
    pub(crate) fn are_distinct_servers(self, numbers: &[u8]) -> bool {
        numbers.iter().all(|number| (1..=self.servers).contains(number)) && are_different(numbers)
    }

    /// The numbers of all servers, from 1. Server *i* evaluates polynomials at the point *i*.
    pub fn numbers(self) -> impl Iterator<Item = u8> {
        1..=self.servers
    }

    /// The *t* servers that receive seeds when the secret with number `turn` is shared. They are
    /// consecutive servers, beginning with server 1 if `turn` is 0. Over time, each server receives
    /// the same number of seeds.
    fn drawn(self, turn: u64) -> impl Iterator<Item = u8> {
        let servers = u64::from(self.servers);
        let first = turn % servers;
        (0..u64::from(self.colluding)).map(move |i| ((first + i) % servers) as u8 + 1)
    }
}

/// The seed from which a share is drawn.
pub type Seed = [u8; 32];

/// A party's share of a vector of elements.
#[derive(Clone, PartialEq, Eq)]
pub enum Share<E> {
    /// A seed from which the share is drawn.
    Drawn(Seed),
    /// The elements of the share.
    Computed(Vec<E>),
}

/// Omits the contents, because a share must not leave the party that holds it.
impl<E> fmt::Debug for Share<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drawn(_) => f.write_str("Drawn"),
            Self::Computed(elements) => write!(f, "Computed({} elements)", elements.len()),
        }
    }
}

impl<E: Copy> Share<E> {
    /// Whether the share is a valid share of a vector of `count` elements.
    pub fn has_length<F: Field<Element = E>>(&self, count: usize) -> bool {
        match self {
            Self::Drawn(_) => true,
            Self::Computed(elements) => {
                elements.len() == count && elements.iter().copied().all(F::is_element)
            }
        }
    }

    /// The elements of the share; `None` if the share is not a valid share of `count` elements.
    pub fn into_elements<F: Field<Element = E>>(self, count: usize) -> Option<Vec<E>> {
        self.has_length::<F>(count).then(|| match self {
            Self::Drawn(seed) => draw::<F>(&seed, count),
            Self::Computed(elements) => elements,
        })
    }
}

fn draw<F: Field>(seed: &Seed, count: usize) -> Vec<F::Element> {
    let mut elements = vec![F::ZERO; count];
    F::draw(&mut ChaCha20Rng::from_seed(*seed), &mut elements);
    elements
}

/// Shares each element of `secret`, and returns the shares in the order of the servers. *t* servers
/// receive a seed instead of a share. Which servers these are depends only on `turn`, the number of
/// the secret.
pub fn share<F: Field>(
    parties: Parties,
    secret: &[F::Element],
    turn: u64,
    coins: &mut dyn CryptoRng,
) -> Vec<Share<F::Element>> {
    // Alg. 1, Create, step 1: the drawn shares determine the random polynomial.
    let drawn: Vec<_> = parties.drawn(turn).collect();
    let seeds: Vec<Seed> = drawn.iter().map(|_| fresh_seed(coins)).collect();
    let known: Vec<_> = seeds.iter().map(|seed| draw::<F>(seed, secret.len())).collect();
    // The drawn and the computed shares together reveal the secret.
    let known = Zeroizing::new(known);
    let fixed_at: Vec<u8> = std::iter::once(0).chain(drawn.iter().copied()).collect();
    // Alg. 1, Create, steps 2 and 3: the value of the polynomial for each server.
    let share_of = |number| match drawn.iter().position(|other| *other == number) {
        Some(i) => Share::Drawn(seeds[i]),
        None => {
            let weights = weights::<F>(&fixed_at, number);
            let mut elements = vec![F::ZERO; secret.len()];
            let rows = std::iter::once(secret).chain(known.iter().map(Vec::as_slice));
            for (weight, row) in weights.into_iter().zip(rows) {
                F::add_multiple(&mut elements, weight, row);
            }
            Share::Computed(elements)
        }
    };
    parties.numbers().map(share_of).collect()
}

fn fresh_seed(coins: &mut dyn CryptoRng) -> Seed {
    let mut seed = Seed::default();
    coins.fill_bytes(&mut seed);
    seed
}

/// Recovers the secret from the shares of servers `numbers`. One more share than the degree of the
/// polynomial is needed. `None` if there are no shares, not exactly one share for each number, two
/// shares of one server, or shares of different lengths.
pub fn recover<F: Field>(numbers: &[u8], shares: &[&[F::Element]]) -> Option<Vec<F::Element>> {
    // Alg. 1, Recover, steps 2 and 3: interpolate, and evaluate at 0.
    value::<F>(numbers, shares, 0)
}

/// Computes the share of `server` from *t* + 1 other shares. `None` if there are no shares, not
/// exactly one share for each number, two shares of one server, or shares of different lengths.
pub fn share_of_another<F: Field>(
    numbers: &[u8],
    shares: &[&[F::Element]],
    server: u8,
) -> Option<Vec<F::Element>> {
    value::<F>(numbers, shares, server)
}

/// Interpolates the polynomial whose values at the points `numbers` are `shares`, and evaluates it
/// at `at`. `None` in the same cases as [`recover`].
pub(crate) fn value<F: Field>(
    numbers: &[u8],
    shares: &[&[F::Element]],
    at: u8,
) -> Option<Vec<F::Element>> {
    let length = shares.first()?.len();
    let are_of_one_length = shares.iter().all(|share| share.len() == length);
    if numbers.len() != shares.len() || !are_of_one_length || !are_different(numbers) {
        return None;
    }
    let mut value = vec![F::ZERO; length];
    F::combine(&mut value, &weights::<F>(numbers, at), 1, shares);
    Some(value)
}

/// Whether all numbers are different.
pub(crate) fn are_different(numbers: &[u8]) -> bool {
    (1..numbers.len()).all(|i| !numbers[..i].contains(&numbers[i]))
}

/// The Lagrange weights for interpolation at `at`, for a polynomial whose degree is less than the
/// number of points. All `numbers` must be different.
pub(crate) fn weights<F: Field>(numbers: &[u8], at: u8) -> Vec<F::Element> {
    let place = |number: &u8| F::place(*number);
    let weight = |of: &u8| {
        let others = numbers.iter().filter(|other| *other != of);
        others.fold(F::ONE, |weight, other| {
            let distance = F::subtract(place(of), place(other));
            // Different numbers have different points, so no distance is zero.
            let inverse = F::inverse(distance).unwrap_or(F::ZERO);
            F::multiply(weight, F::multiply(F::subtract(place(&at), place(other)), inverse))
        })
    };
    numbers.iter().map(weight).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::field::tests::{drawn, over_all_fields};

    /// Examples of supported numbers of servers, and of colluding servers.
    pub(crate) fn all_parties() -> Vec<Parties> {
        let all = [(3, 1), (4, 1), (5, 1), (5, 2), (6, 2), (7, 1), (7, 2), (7, 3)];
        all.map(|(servers, colluding)| Parties::new(servers, colluding).unwrap()).to_vec()
    }

    pub(crate) fn shared<F: Field>(
        parties: Parties,
        secret: &[F::Element],
        seed: u64,
    ) -> Vec<Vec<F::Element>> {
        let shares = share::<F>(parties, secret, seed, &mut StdRng::seed_from_u64(seed));
        shares.into_iter().map(|share| share.into_elements::<F>(secret.len()).unwrap()).collect()
    }

    /// Implements Algorithm 1, `SSS.Create`, literally, for one element.
    fn create<F: Field>(
        parties: Parties,
        secret: F::Element,
        coefficients: &[F::Element],
    ) -> Vec<F::Element> {
        let value = |number: u8| {
            let mut power = F::ONE;
            coefficients.iter().fold(secret, |sum, coefficient| {
                power = F::multiply(power, F::place(number));
                F::add(sum, F::multiply(*coefficient, power))
            })
        };
        parties.numbers().map(value).collect()
    }

    /// All sets of `count` servers.
    fn choices(parties: Parties, count: usize) -> Vec<Vec<u8>> {
        let chosen = crate::answers::choices(parties.servers(), count);
        chosen.into_iter().map(|which| which.into_iter().map(|i| i as u8 + 1).collect()).collect()
    }

    fn of<'s, E>(shares: &'s [Vec<E>], numbers: &[u8]) -> Vec<&'s [E]> {
        numbers.iter().map(|number| &shares[usize::from(*number) - 1][..]).collect()
    }

    fn recovered<F: Field>(numbers: &[u8], shares: &[Vec<F::Element>]) -> Vec<F::Element> {
        recover::<F>(numbers, &of(shares, numbers)).unwrap()
    }

    #[test]
    fn invalid_shares_recover_nothing() {
        use crate::field::Gf256;
        let recover = recover::<Gf256>;
        assert_eq!(recover(&[], &[]), None);
        assert_eq!(recover(&[1, 1], &[&[7], &[7]]), None);
        assert_eq!(recover(&[1, 2], &[&[7]]), None);
        assert_eq!(recover(&[1, 2], &[&[7], &[7, 7]]), None);
        assert_eq!(recover(&[1, 2], &[&[], &[]]), Some(vec![]));
        assert_eq!(recover(&[1, 2], &[&[7], &[7]]), Some(vec![7]));
    }

    fn enough_shares_give_the_secret<F: Field>() {
        for parties in all_parties() {
            let secret = drawn::<F>(1, 20);
            for turn in 0..8 {
                let shares = shared::<F>(parties, &secret, turn);
                for chosen in choices(parties, parties.colluding() + 1) {
                    assert_eq!(recovered::<F>(&chosen, &shares), secret);
                }
                // One share fewer gives another value.
                for chosen in choices(parties, parties.colluding()) {
                    assert_ne!(recovered::<F>(&chosen, &shares), secret);
                }
            }
        }
    }

    #[test]
    fn any_shares_give_the_secret_if_they_are_enough() {
        over_all_fields!(enough_shares_give_the_secret);
    }

    /// Checks that drawn and computed shares are a result of Algorithm 1 for some coefficients: one
    /// polynomial of degree *t* goes through all of them.
    fn shares_match_the_paper<F: Field>() {
        for parties in all_parties() {
            let degree = parties.colluding();
            let secret = drawn::<F>(2, 5);
            let shares = shared::<F>(parties, &secret, 3);
            for (i, secret) in secret.iter().enumerate() {
                // Divided differences give the coefficients, by Newton's form.
                let values: Vec<_> =
                    std::iter::once(*secret).chain(shares.iter().map(|it| it[i])).collect();
                let coefficients = interpolated::<F>(&values[..=degree]);
                assert_eq!(coefficients[0], *secret);
                assert_eq!(create::<F>(parties, *secret, &coefficients[1..]), values[1..]);
            }
        }
    }

    /// The coefficients of the polynomial with these values at 0, 1, 2 and so on.
    fn interpolated<F: Field>(values: &[F::Element]) -> Vec<F::Element> {
        let mut sum = vec![F::ZERO; values.len()];
        for (i, value) in values.iter().enumerate() {
            let mut term = vec![F::ZERO; values.len()];
            term[0] = *value;
            for j in (0..values.len()).filter(|j| *j != i) {
                let distance = F::subtract(F::place(i as u8), F::place(j as u8));
                let scale = F::inverse(distance).unwrap();
                // Multiply the term by (x − j) / (i − j).
                let minus_j = F::subtract(F::ZERO, F::place(j as u8));
                for k in (0..term.len()).rev() {
                    let below = if k > 0 { term[k - 1] } else { F::ZERO };
                    term[k] = F::multiply(scale, F::add(below, F::multiply(minus_j, term[k])));
                }
            }
            sum.iter_mut().zip(term).for_each(|(sum, term)| *sum = F::add(*sum, term));
        }
        sum
    }

    #[test]
    fn shares_are_values_of_a_polynomial_as_in_the_paper() {
        over_all_fields!(shares_match_the_paper);
    }

    /// Checks Lemma 2.1: shares of sums and products can be calculated from shares.
    fn shares_can_be_calculated_with<F: Field>() {
        for parties in all_parties() {
            let (a, b, c) = (drawn::<F>(1, 9), drawn::<F>(2, 9), drawn::<F>(3, 1)[0]);
            let (of_a, of_b) = (shared::<F>(parties, &a, 4), shared::<F>(parties, &b, 5));
            let each = |calculate: &dyn Fn(F::Element, F::Element) -> F::Element| {
                let pairs = of_a.iter().zip(&of_b);
                let all: Vec<Vec<_>> = pairs
                    .map(|(a, b)| a.iter().zip(b).map(|(a, b)| calculate(*a, *b)).collect())
                    .collect();
                let expected: Vec<_> = a.iter().zip(&b).map(|(a, b)| calculate(*a, *b)).collect();
                (all, expected)
            };
            let few = parties.colluding() + 1;
            for (found, count) in [
                (each(&F::add), few),
                (each(&|a, _| F::multiply(c, a)), few),
                (each(&F::multiply), parties.for_product()),
            ] {
                let (shares, expected) = found;
                for chosen in choices(parties, count) {
                    assert_eq!(recovered::<F>(&chosen, &shares), expected);
                }
            }
            // A product has twice the degree.
            let (shares, expected) = each(&F::multiply);
            for chosen in choices(parties, parties.for_product() - 1) {
                assert_ne!(recovered::<F>(&chosen, &shares), expected);
            }
        }
    }

    #[test]
    fn sums_multiples_and_products_of_shares_are_shares_of_them() {
        over_all_fields!(shares_can_be_calculated_with);
    }

    /// Checks that the shares of *t* parties are uniform and independent of the secret. GF(2^8) is
    /// small enough to count: each of the 65,536 pairs of shares of two of five servers must be
    /// equally frequent.
    #[test]
    fn t_shares_are_independent_of_the_secret() {
        use crate::field::Gf256;
        use oblivio_testkit::statistics::{Verdicts, uniformity};
        let mut verdicts = Verdicts::new(1e-6);
        let parties = Parties::new(5, 2).unwrap();
        for secret in [0u8, 1, 0xc7] {
            let count = 64 * 65_536;
            let shares = shared::<Gf256>(parties, &vec![secret; count], u64::from(secret));
            for chosen in choices(parties, 2) {
                let pair = of(&shares, &chosen);
                let mut seen = vec![0; 65_536];
                for (a, b) in pair[0].iter().zip(pair[1]) {
                    seen[usize::from(*a) << 8 | usize::from(*b)] += 1;
                }
                verdicts.add(format!("{chosen:?} of {secret}"), uniformity(&seen));
            }
        }
        verdicts.conclude();
    }

    #[test]
    fn every_sharing_draws_new_seeds_for_servers_in_turn() {
        use crate::field::Gf256;
        let parties = Parties::new(5, 2).unwrap();
        let mut coins = StdRng::seed_from_u64(1);
        let mut seeds = std::collections::HashSet::new();
        let mut drawn_of = [0; 5];
        for turn in 0..100 {
            for (i, share) in share::<Gf256>(parties, &[0; 4], turn, &mut coins).iter().enumerate()
            {
                if let Share::Drawn(seed) = share {
                    assert!(seeds.insert(*seed), "a seed was used twice");
                    drawn_of[i] += 1;
                }
            }
        }
        assert_eq!(drawn_of, [40; 5]);
    }

    #[test]
    fn too_few_and_too_many_servers_are_refused() {
        for (servers, colluding) in [(0, 0), (3, 0), (2, 1), (4, 2), (6, 3), (8, 1), (255, 127)] {
            let error = Parties::new(servers, colluding).unwrap_err().to_string();
            assert!(error.contains("servers"), "{error}");
        }
    }
}
