//! Fetches shares of several slots at once.

use std::ops::Range;

use oblivio_core::StoreError;
use zeroize::Zeroizing;

use super::servers::{self, TreeServers};
use crate::answers::{DecodeError, Recovered, choices, decode_from};
use crate::field::Gf256;
use crate::message::{Request, Slots, TreePoint};
use crate::sharing::{Parties, recover, share_of_another};

/// Shares of consecutive slots, fetched from some servers.
pub(super) struct Fetched {
    /// The numbers of the servers that sent shares, in the order of `shares`.
    pub(super) numbers: Vec<u8>,
    /// For each server, the shares of all slots, one after the other.
    shares: Vec<Vec<u8>>,
    slot_bytes: usize,
    /// The servers that failed, with their errors.
    pub(super) failed: Vec<(usize, StoreError)>,
}

/// Fetches shares of slots, at point `at`, from each server whose entry in `participates` is true.
pub(super) fn fetch(
    servers: &mut TreeServers<'_>,
    participates: &[bool],
    at: TreePoint,
    slots: Slots,
    slot_bytes: usize,
) -> Fetched {
    let asked: Vec<_> = participates.iter().map(|it| it.then_some(at)).collect();
    fetch_each(servers, &asked, slots, slot_bytes)
}

/// Fetches shares of slots from each server at its point in `asked`. A server whose entry is `None`
/// is not asked. The caller must ensure that the slots have the same contents at all these points.
pub(super) fn fetch_each(
    servers: &mut TreeServers<'_>,
    asked: &[Option<TreePoint>],
    slots: Slots,
    slot_bytes: usize,
) -> Fetched {
    let request = |at: &Option<TreePoint>| at.map(|at| Request::Fetch { at, slots });
    let results = servers.ask_some(asked.iter().map(request).collect());
    let (numbers, shares, failed) = (Vec::new(), Vec::new(), Vec::new());
    let mut fetched = Fetched { numbers, shares, slot_bytes, failed };
    for ((server, number), result) in (1..).enumerate().zip(results) {
        match result.map(|result| servers::expect_share(result, slots.count * slot_bytes)) {
            Some(Ok(share)) => {
                fetched.numbers.push(number);
                fetched.shares.push(share);
            }
            Some(Err(error)) => fetched.failed.push((server, error)),
            None => (),
        }
    }
    fetched
}

impl Fetched {
    /// The shares of the slot at index `place`.
    pub(super) fn slot(&self, place: usize) -> Vec<&[u8]> {
        let start = place * self.slot_bytes;
        self.shares.iter().map(|shares| &shares[start..start + self.slot_bytes]).collect()
    }

    /// Recovers a slot. Returns its contents, with the numbers of the servers whose shares do not
    /// fit.
    pub(super) fn decoded(
        &self,
        parties: Parties,
        place: usize,
    ) -> Result<Recovered<u8>, DecodeError> {
        let shares: Vec<_> = self.slot(place).into_iter().map(<[u8]>::to_vec).collect();
        let enough = parties.colluding() + 1;
        decode_from::<Gf256>(parties, enough, &self.numbers, &shares, self.slot_bytes)
    }

    /// The servers whose shares of a slot are provably wrong within `bytes`. `None` if no set of
    /// *t* + 1 shares gives a sound value, or too few servers have answered.
    ///
    /// A value is sound if `is_sound` accepts it. The shares of *t* + 1 servers can give a sound
    /// value even if some of them lie: a liar can add shares of a polynomial that does not change
    /// the value. Honest servers then seem not to fit. So a server is named only if it fits no set
    /// of *t* + 1 servers with a sound value. One of these sets has only honest servers, and no
    /// server that fits this set is named.
    pub(super) fn wrong(
        &self,
        parties: Parties,
        place: usize,
        bytes: &Range<usize>,
        is_sound: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        // Otherwise there might be no honest set of *t* + 1 servers.
        if self.numbers.len() < parties.for_product() {
            return None;
        }
        let shares: Vec<_> = self.slot(place).iter().map(|share| &share[bytes.clone()]).collect();
        let few = choices(self.numbers.len(), parties.colluding() + 1).into_iter();
        let do_not_fit = few.filter_map(|few| {
            let (numbers, of_few): (Vec<_>, Vec<_>) =
                few.iter().map(|i| (self.numbers[*i], shares[*i])).unzip();
            let block = Zeroizing::new(recover::<Gf256>(&numbers, &of_few)?);
            let fits = |number, share: &[u8]| {
                share_of_another::<Gf256>(&numbers, &of_few, number).as_deref() == Some(share)
            };
            is_sound(&block).then(|| {
                let all = self.numbers.iter().copied().zip(&shares);
                let wrong = all.filter(|(number, share)| !fits(*number, share));
                wrong.map(|(number, _)| number).collect::<Vec<_>>()
            })
        });
        do_not_fit.reduce(|mut wrong, other| {
            wrong.retain(|number| other.contains(number));
            wrong
        })
    }

    /// Computes the share that server `number` must have of a slot, ignoring the shares of
    /// `wrong_servers`; `None` if too few shares remain.
    pub(super) fn share_of(
        &self,
        number: u8,
        parties: Parties,
        place: usize,
        wrong_servers: &[u8],
    ) -> Option<Vec<u8>> {
        let honest = self.numbers.iter().copied().zip(self.slot(place));
        let honest = honest.filter(|(number, _)| !wrong_servers.contains(number));
        let (numbers, shares): (Vec<_>, Vec<_>) = honest.take(parties.colluding() + 1).unzip();
        let is_enough = numbers.len() > parties.colluding();
        is_enough.then(|| share_of_another::<Gf256>(&numbers, &shares, number)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::field::tests::drawn;
    use crate::sharing::tests::{all_parties, shared};

    const BYTES: usize = 24;

    fn fetched(shares: Vec<Vec<u8>>) -> Fetched {
        let numbers = (1..).take(shares.len()).collect();
        Fetched { numbers, shares, slot_bytes: BYTES, failed: Vec::new() }
    }

    /// No honest server is named, even if the liars can make a value look sound: they add the
    /// values of a polynomial that is zero at 0, so that the secret stays the same. If *t* > 1, the
    /// polynomial is also zero at the server `spared`.
    #[test]
    fn no_honest_server_is_named_whatever_t_liars_add() {
        let block = drawn::<Gf256>(1, BYTES);
        for parties in all_parties() {
            let (servers, colluding) = (parties.servers(), parties.colluding());
            for liars in choices(servers, colluding) {
                for spared in 0..servers {
                    let mut shares = shared::<Gf256>(parties, &block, 3);
                    for i in &liars {
                        let (x, zero) = (*i as u8 + 1, spared as u8 + 1);
                        // A polynomial of degree 2; with t = 1 it can only be a multiple of the
                        // number.
                        let more = if colluding > 1 { Gf256::multiply(x, x ^ zero) } else { x };
                        shares[*i].iter_mut().for_each(|byte| *byte ^= more);
                    }
                    let is_sound = |held: &[u8]| held == block;
                    let wrong = fetched(shares).wrong(parties, 0, &(0..BYTES), is_sound);
                    let named = wrong.expect("honest servers are enough");
                    assert!(named.iter().all(|number| liars.contains(&(*number as usize - 1))));
                }
            }
        }
    }

    /// If only 2*t* servers answer, no server is named: there may be as many liars as honest
    /// servers.
    #[test]
    fn too_few_answers_name_no_server() {
        let block = drawn::<Gf256>(1, BYTES);
        for parties in all_parties() {
            let few = parties.for_product() - 1;
            let mut shares = shared::<Gf256>(parties, &block, 3);
            shares.truncate(few);
            shares[0][5] ^= 1;
            let is_sound = |held: &[u8]| held == block;
            assert_eq!(fetched(shares).wrong(parties, 0, &(0..BYTES), is_sound), None);
        }
    }

    #[test]
    fn a_single_server_with_a_wrong_share_is_named() {
        let block = drawn::<Gf256>(1, BYTES);
        for parties in all_parties() {
            for liar in 0..parties.servers() {
                let mut shares = shared::<Gf256>(parties, &block, 3);
                shares[liar][5] ^= 1;
                let is_sound = |held: &[u8]| held == block;
                let wrong = fetched(shares).wrong(parties, 0, &(0..BYTES), is_sound);
                assert_eq!(wrong, Some(vec![liar as u8 + 1]));
            }
        }
    }
}
