//! What servers have answered, as a word of a Reed–Solomon code: the answers of all servers lie on one polynomial of degree 2*t*, and with more than 2*t* + 1 of
//! them it shows if some do not.
//!
//! The paper takes servers to do what they are told, and needs 2*t* + 1 answers. With *e* answers more than that, up to *e* wrong ones are noticed, and up to *e* / 2
//! are corrected, but no more than *e* − *t*: the servers that gave them are named. This is not in the paper.
//!
//! Two words of the code differ in *e* + 1 places. So *t* servers that lie together can come as near to another word as *e* + 1 − *t* answers of others are: if so many were
//! corrected, these would be named. Up to *e* − *t*, the answer of whoever is named is wrong: it has lied, its shares are damaged, or another has dealt it wrong
//! ones in an eviction.

use crate::field::Field;
use crate::sharing::{Parties, recover, value};

/// The shares that some servers have answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answers<E> {
    /// The numbers of these servers.
    pub(crate) numbers: Vec<u8>,
    /// The share of each.
    pub(crate) shares: Vec<Vec<E>>,
}

/// A block that was recovered, and whose answers were wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered<E> {
    /// The block.
    pub block: Vec<E>,
    /// The numbers of servers whose answers do not fit those of the others. None of them could have been noticed if there were no more answers than are
    /// needed.
    pub liars: Vec<u8>,
}

/// Answers of which no block can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBlock {
    /// There are fewer than 2*t* + 1, two of one server, one of a server that there is not, or one that is no block.
    #[error("too few servers have answered, or with something else than a share of a block")]
    NotAnswers,
    /// They do not fit each other, and there are too few of them to tell which are wrong.
    #[error(
        "answers of servers contradict each other, and there are too few to tell which are wrong"
    )]
    Contradict,
}

/// The block that servers `numbers` have answered, each with its share of degree 2*t*, of `elements` elements.
pub(crate) fn decode<F: Field>(
    parties: Parties,
    numbers: &[u8],
    answers: &[Vec<F::Element>],
    elements: usize,
) -> Result<Recovered<F::Element>, NoBlock> {
    decode_from::<F>(parties, parties.for_product(), numbers, answers, elements)
}

/// The same of shares of which so many are enough: *t* + 1, if they are of degree *t*.
pub(crate) fn decode_from<F: Field>(
    parties: Parties,
    enough: usize,
    numbers: &[u8],
    answers: &[Vec<F::Element>],
    elements: usize,
) -> Result<Recovered<F::Element>, NoBlock> {
    let is_block = |answer: &Vec<F::Element>| {
        answer.len() == elements && answer.iter().copied().all(F::is_element)
    };
    if numbers.len() != answers.len()
        || numbers.len() < enough
        || !(parties.are_some(numbers) && answers.iter().all(is_block))
    {
        return Err(NoBlock::NotAnswers);
    }
    // There are seven servers at most: all choices are a few. The fewest liars come first.
    for liars in (0..=correctable(parties, enough, numbers.len()))
        .flat_map(|count| choices(numbers.len(), count))
    {
        let honest: Vec<usize> = (0..numbers.len()).filter(|i| !liars.contains(i)).collect();
        if fit_each_other::<F>(&honest, numbers, answers, enough) {
            let used = &honest[..enough];
            let (places, shares) = chosen(used, numbers, answers);
            let block = recover::<F>(&places, &shares).ok_or(NoBlock::NotAnswers)?;
            return Ok(Recovered { block, liars: liars.iter().map(|i| numbers[*i]).collect() });
        }
    }
    Err(NoBlock::Contradict)
}

/// How many wrong answers are corrected of so many, of which some are enough.
pub(crate) fn correctable(parties: Parties, enough: usize, answers: usize) -> usize {
    let more = answers.saturating_sub(enough);
    (more / 2).min(more.saturating_sub(parties.colluding()))
}

/// Whether the polynomial through the first of them goes through all.
fn fit_each_other<F: Field>(
    honest: &[usize],
    numbers: &[u8],
    answers: &[Vec<F::Element>],
    enough: usize,
) -> bool {
    let (first, others) = honest.split_at(enough);
    let (places, shares) = chosen(first, numbers, answers);
    others.iter().all(|other| {
        let expected = value::<F>(&places, &shares, numbers[*other]);
        expected.as_ref() == Some(&answers[*other])
    })
}

fn chosen<'a, E>(
    which: &[usize],
    numbers: &[u8],
    answers: &'a [Vec<E>],
) -> (Vec<u8>, Vec<&'a [E]>) {
    which.iter().map(|i| (numbers[*i], &answers[*i][..])).unzip()
}

/// Every choice of `count` of the numbers below `all`.
pub(crate) fn choices(all: usize, count: usize) -> Vec<Vec<usize>> {
    let sets = (0u32..1 << all).filter(|set| set.count_ones() as usize == count);
    sets.map(|set| (0..all).filter(|i| set >> i & 1 == 1).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::tests::{drawn, over_all_fields};
    use crate::sharing::tests::{all_parties, shared};

    const ELEMENTS: usize = 9;

    /// Shares of degree 2t of some block: of a product of two.
    fn product<F: Field>(parties: Parties) -> (Vec<F::Element>, Vec<Vec<F::Element>>) {
        let (a, b) = (drawn::<F>(1, ELEMENTS), drawn::<F>(2, ELEMENTS));
        let multiply = |a: &[F::Element], b: &[F::Element]| -> Vec<_> {
            a.iter().zip(b).map(|(a, b)| F::multiply(*a, *b)).collect()
        };
        let (of_a, of_b) = (shared::<F>(parties, &a, 3), shared::<F>(parties, &b, 4));
        (multiply(&a, &b), of_a.iter().zip(&of_b).map(|(a, b)| multiply(a, b)).collect())
    }

    fn liars_are_named_as_far_as_there_are_answers<F: Field>() {
        for parties in all_parties() {
            let (block, answers) = product::<F>(parties);
            let all: Vec<u8> = parties.numbers().collect();
            for count in parties.for_product()..=parties.servers() {
                for who in choices(parties.servers(), count) {
                    let numbers: Vec<_> = who.iter().map(|i| all[*i]).collect();
                    let of_them: Vec<_> = who.iter().map(|i| answers[*i].clone()).collect();
                    let more = count - parties.for_product();
                    for wrong in (0..=more).flat_map(|wrong| choices(count, wrong)) {
                        let mut answers = of_them.clone();
                        for i in &wrong {
                            // One element of one, all of another.
                            let elements = &mut answers[*i][..1 + i % 2 * (ELEMENTS - 1)];
                            elements.iter_mut().for_each(|it| *it = F::add(*it, F::ONE));
                        }
                        let decoded = decode::<F>(parties, &numbers, &answers, ELEMENTS);
                        if wrong.len() <= correctable(parties, parties.for_product(), count) {
                            let liars = wrong.iter().map(|i| numbers[*i]).collect();
                            assert_eq!(decoded, Ok(Recovered { block: block.clone(), liars }));
                        } else {
                            // Something is noticed: nothing is taken for right with nobody lying.
                            assert!(!decoded.is_ok_and(|it| it.liars.is_empty()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn wrong_answers_are_noticed_and_corrected_as_far_as_there_are_more_than_needed() {
        over_all_fields!(liars_are_named_as_far_as_there_are_answers);
    }

    /// As many as may collude add what differs between two words of the code, in their own places: all but one of the places in which it does are theirs, or fewer.
    #[test]
    fn no_honest_server_is_named_however_those_lie_that_may_collude() {
        use crate::field::Gf256;
        let add = |to: &mut [u8], more: &[u8]| Gf256::add_multiple(to, Gf256::ONE, more);
        for parties in all_parties() {
            let (_, answers) = product::<Gf256>(parties);
            let numbers: Vec<_> = parties.numbers().collect();
            let (servers, all_zeros) = (parties.servers(), vec![0; ELEMENTS]);
            for enough in [parties.colluding() + 1, parties.for_product()] {
                // A word that is zero in as many places as can be: all but the last of those that fix it.
                for nonzero in choices(servers, servers - enough + 1) {
                    let mut fixed: Vec<_> = (0..servers).filter(|i| !nonzero.contains(i)).collect();
                    fixed.push(nonzero[0]);
                    let (of, ones) = (fixed.iter().map(|i| numbers[*i]), vec![1; ELEMENTS]);
                    let of: Vec<_> = of.collect();
                    let values: Vec<&[u8]> = fixed
                        .iter()
                        .map(|i| if *i == nonzero[0] { &ones[..] } else { &all_zeros[..] })
                        .collect();
                    let word = numbers.iter().map(|at| value::<Gf256>(&of, &values, *at).unwrap());
                    let word: Vec<_> = word.collect();
                    for liars in choices(servers, parties.colluding()) {
                        // Of degree t are the shares of zeros, for example.
                        let mut said = if enough == parties.for_product() {
                            answers.clone()
                        } else {
                            vec![all_zeros.clone(); servers]
                        };
                        liars.iter().for_each(|liar| add(&mut said[*liar], &word[*liar]));
                        let decoded =
                            decode_from::<Gf256>(parties, enough, &numbers, &said, ELEMENTS);
                        let named = decoded.map(|it| it.liars).unwrap_or_default();
                        let have_lied = |number: &u8| liars.contains(&(usize::from(*number) - 1));
                        assert!(named.iter().all(have_lied), "{parties:?}: {liars:?}, {named:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        use crate::field::Gf256;
        let parties = Parties::new(5, 1).unwrap();
        let (_, answers) = product::<Gf256>(parties);
        let of = |numbers: &[u8], answers: &[Vec<u8>]| {
            decode::<Gf256>(parties, numbers, answers, ELEMENTS).map(|_| ())
        };
        assert_eq!(of(&[1, 2, 3], &answers[..3]), Ok(()));
        let short = [answers[0].clone(), answers[1].clone(), vec![0; ELEMENTS - 1]];
        for (numbers, answers) in [
            (&[][..], &[][..]),
            (&[1, 2], &answers[..2]),
            (&[1, 2, 2], &answers[..3]),
            (&[0, 1, 2], &answers[..3]),
            (&[1, 2, 6], &answers[..3]),
            (&[1, 2, 3, 4], &answers[..3]),
            (&[1, 2, 3], &short[..]),
        ] {
            assert_eq!(of(numbers, answers), Err(NoBlock::NotAnswers), "{numbers:?}");
        }
        let two_wrong =
            [1, 2, 3, 4].map(|i: usize| if i < 3 { vec![7; ELEMENTS] } else { answers[i].clone() });
        assert_eq!(of(&[2, 3, 4, 5], &two_wrong), Err(NoBlock::Contradict));
    }
}
