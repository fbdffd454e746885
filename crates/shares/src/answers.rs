//! Decoding of the servers' answers as a word of a Reed–Solomon code. The answers of all servers
//! lie on one polynomial of degree 2*t*. With more than 2*t* + 1 answers, an answer off the
//! polynomial can be detected.
//!
//! The paper assumes honest servers and needs 2*t* + 1 answers. With *e* more answers, up to *e*
//! wrong ones are detected. Up to *e* / 2 wrong answers, but at most *e* − *t*, are corrected, and
//! the servers that gave them are named. This correction is not in the paper.
//!
//! No more than *e* − *t* are corrected, because two code words may differ in only *e* + 1 places.
//! So *t* colluding liars can produce a word that differs from a false code word in only *e* + 1 −
//! *t* honest answers. Correcting *e* + 1 − *t* answers would name honest servers. Up to *e* − *t*,
//! the answer of each named server is wrong: it lied, its shares are damaged, or another server
//! dealt it wrong shares in an eviction.

use crate::field::Field;
use crate::sharing::{Parties, recover, value};

/// The answers of some servers: their shares of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answers<E> {
    /// The numbers of the servers that answered.
    pub(crate) numbers: Vec<u8>,
    /// The share of each server, in the order of `numbers`.
    pub(crate) shares: Vec<Vec<E>>,
}

/// A recovered block, and the servers whose answers were wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered<E> {
    /// The recovered block.
    pub block: Vec<E>,
    /// The numbers of the servers whose answers do not fit the recovered block. Always empty if
    /// there are only as many answers as recovery needs.
    pub wrong_servers: Vec<u8>,
}

/// Why the answers do not determine a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are too few answers: fewer than 2*t* + 1 for a selected block, or fewer than *t* + 1
    /// for stored shares. Or one server answered twice, an answer is from an unknown server, or an
    /// answer has the wrong length or an invalid element.
    #[error("too few servers answered with a valid share of a block")]
    NotAnswers,
    /// The answers contradict each other, and too few servers answered to tell which are wrong.
    #[error(
        "answers of servers contradict each other, and too few servers answered to tell which \
         are wrong"
    )]
    Contradict,
}

/// Recovers a block of `elements` elements from the answers of servers `numbers`. The answers are
/// shares of degree 2*t*.
pub(crate) fn decode<F: Field>(
    parties: Parties,
    numbers: &[u8],
    answers: &[Vec<F::Element>],
    elements: usize,
) -> Result<Recovered<F::Element>, DecodeError> {
    decode_from::<F>(parties, parties.for_product(), numbers, answers, elements)
}

/// Recovers a block as [`decode`] does, but from shares of any degree: `enough` shares determine
/// the block. For shares of degree *t*, `enough` is *t* + 1.
pub(crate) fn decode_from<F: Field>(
    parties: Parties,
    enough: usize,
    numbers: &[u8],
    answers: &[Vec<F::Element>],
    elements: usize,
) -> Result<Recovered<F::Element>, DecodeError> {
    let is_block = |answer: &Vec<F::Element>| {
        answer.len() == elements && answer.iter().copied().all(F::is_element)
    };
    if numbers.len() != answers.len()
        || numbers.len() < enough
        || !(parties.are_distinct_servers(numbers) && answers.iter().all(is_block))
    {
        return Err(DecodeError::NotAnswers);
    }
    // There are at most seven servers, so all choices can be tried. Try the fewest liars first.
    for liars in (0..=correctable(parties, enough, numbers.len()))
        .flat_map(|count| choices(numbers.len(), count))
    {
        let honest: Vec<usize> = (0..numbers.len()).filter(|i| !liars.contains(i)).collect();
        if fit_each_other::<F>(&honest, numbers, answers, enough) {
            let used = &honest[..enough];
            let (places, shares) = chosen(used, numbers, answers);
            let block = recover::<F>(&places, &shares).ok_or(DecodeError::NotAnswers)?;
            return Ok(Recovered {
                block,
                wrong_servers: liars.iter().map(|i| numbers[*i]).collect(),
            });
        }
    }
    Err(DecodeError::Contradict)
}

/// The number of wrong answers that can be corrected, if there are `answers` answers, of which
/// `enough` recover the block.
pub(crate) fn correctable(parties: Parties, enough: usize, answers: usize) -> usize {
    let more = answers.saturating_sub(enough);
    (more / 2).min(more.saturating_sub(parties.colluding()))
}

/// Whether the answers at the indices `honest` all lie on the polynomial through the first `enough`
/// of these answers.
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

/// Every set of `count` indices below `all`.
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

    /// Returns a random product of two shared blocks, and its shares, which have degree 2t.
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
                for indices in choices(parties.servers(), count) {
                    let numbers: Vec<_> = indices.iter().map(|i| all[*i]).collect();
                    let of_them: Vec<_> = indices.iter().map(|i| answers[*i].clone()).collect();
                    let more = count - parties.for_product();
                    for wrong in (0..=more).flat_map(|wrong| choices(count, wrong)) {
                        let mut answers = of_them.clone();
                        for i in &wrong {
                            // Change one element of some answers, and all elements of others.
                            let elements = &mut answers[*i][..1 + i % 2 * (ELEMENTS - 1)];
                            elements.iter_mut().for_each(|it| *it = F::add(*it, F::ONE));
                        }
                        let decoded = decode::<F>(parties, &numbers, &answers, ELEMENTS);
                        if wrong.len() <= correctable(parties, parties.for_product(), count) {
                            let liars = wrong.iter().map(|i| numbers[*i]).collect();
                            assert_eq!(
                                decoded,
                                Ok(Recovered { block: block.clone(), wrong_servers: liars })
                            );
                        } else {
                            // The error is detected: no block is accepted without naming a liar.
                            assert!(!decoded.is_ok_and(|it| it.wrong_servers.is_empty()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn wrong_answers_are_detected_and_corrected_within_the_bounds() {
        over_all_fields!(liars_are_named_as_far_as_there_are_answers);
    }

    /// No honest server is named as wrong. *t* liars add their elements of a code word to their
    /// answers, so that all answers together may come close to a false code word. The added code
    /// word may also be nonzero at honest servers, which do not add their elements.
    #[test]
    fn no_honest_server_is_named_however_t_servers_lie() {
        use crate::field::Gf256;
        let add = |to: &mut [u8], more: &[u8]| Gf256::add_multiple(to, Gf256::ONE, more);
        for parties in all_parties() {
            let (_, answers) = product::<Gf256>(parties);
            let numbers: Vec<_> = parties.numbers().collect();
            let (servers, all_zeros) = (parties.servers(), vec![0; ELEMENTS]);
            for enough in [parties.colluding() + 1, parties.for_product()] {
                // A code word with as many zeros as possible: all but one of the values that fix it
                // are zero.
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
                        // Begin with correct shares: of degree 2t, or, as an example of degree t,
                        // zeros.
                        let mut claimed = if enough == parties.for_product() {
                            answers.clone()
                        } else {
                            vec![all_zeros.clone(); servers]
                        };
                        liars.iter().for_each(|liar| add(&mut claimed[*liar], &word[*liar]));
                        let decoded =
                            decode_from::<Gf256>(parties, enough, &numbers, &claimed, ELEMENTS);
                        let named = decoded.map(|it| it.wrong_servers).unwrap_or_default();
                        let have_lied = |number: &u8| liars.contains(&(usize::from(*number) - 1));
                        assert!(named.iter().all(have_lied), "{parties:?}: {liars:?}, {named:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn invalid_answers_are_refused() {
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
            assert_eq!(of(numbers, answers), Err(DecodeError::NotAnswers), "{numbers:?}");
        }
        let two_wrong =
            [1, 2, 3, 4].map(|i: usize| if i < 3 { vec![7; ELEMENTS] } else { answers[i].clone() });
        assert_eq!(of(&[2, 3, 4, 5], &two_wrong), Err(DecodeError::Contradict));
    }
}
