//! Shares of slots, as servers hold them: several slots at once.

use std::ops::Range;

use oblivio_core::StoreError;
use oblivio_core::store::ShareServers;
use zeroize::Zeroizing;

use super::servers::{self, ask_some};
use crate::answers::{NoBlock, Recovered, choices, decode_from};
use crate::field::Gf256;
use crate::message::{Point, Request, Slots};
use crate::sharing::{Parties, recover, share_of_another};

/// Shares of slots that some servers have answered.
pub(super) struct Fetched {
    /// Whose they are.
    pub(super) numbers: Vec<u8>,
    /// From each of them, those of all slots, one after the other.
    shares: Vec<Vec<u8>>,
    slot_bytes: usize,
    /// Who has not answered.
    pub(super) failed: Vec<(usize, StoreError)>,
}

/// Asks servers for their shares of slots.
pub(super) fn fetch(
    servers: &mut dyn ShareServers,
    is_asked: &[bool],
    at: Point,
    slots: Slots,
    slot_bytes: usize,
) -> Fetched {
    let request = |is_asked: &bool| is_asked.then_some(Request::Fetch { at, slots });
    let said = ask_some(servers, is_asked.iter().map(request).collect());
    let (numbers, shares, failed) = (Vec::new(), Vec::new(), Vec::new());
    let mut fetched = Fetched { numbers, shares, slot_bytes, failed };
    for ((server, number), said) in (1..).enumerate().zip(said) {
        match said.map(|said| servers::share(said, slots.count * slot_bytes)) {
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
    /// The shares of the slot at this place among them.
    pub(super) fn slot(&self, place: usize) -> Vec<&[u8]> {
        let start = place * self.slot_bytes;
        self.shares.iter().map(|shares| &shares[start..start + self.slot_bytes]).collect()
    }

    /// What is in that slot, and whose shares do not fit.
    pub(super) fn decoded(&self, parties: Parties, place: usize) -> Result<Recovered<u8>, NoBlock> {
        let shares: Vec<_> = self.slot(place).into_iter().map(<[u8]>::to_vec).collect();
        let enough = parties.colluding() + 1;
        decode_from::<Gf256>(parties, enough, &self.numbers, &shares, self.slot_bytes)
    }

    /// Whose shares of that slot are wrong, in some bytes of it: those that do not fit a few others that are enough, and give something sound. None if no few do.
    ///
    /// As many as may collude cannot make another look wrong: they do not know what its share is, and so not what theirs give with it.
    pub(super) fn wrong(
        &self,
        parties: Parties,
        place: usize,
        bytes: &Range<usize>,
        is_sound: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let shares: Vec<_> = self.slot(place).iter().map(|share| &share[bytes.clone()]).collect();
        choices(self.numbers.len(), parties.colluding() + 1).into_iter().find_map(|few| {
            let (numbers, of_few): (Vec<_>, Vec<_>) =
                few.iter().map(|i| (self.numbers[*i], shares[*i])).unzip();
            let block = Zeroizing::new(recover::<Gf256>(&numbers, &of_few)?);
            let fits = |number, share: &[u8]| {
                share_of_another::<Gf256>(&numbers, &of_few, number).as_deref() == Some(share)
            };
            is_sound(&block).then(|| {
                let all = self.numbers.iter().copied().zip(&shares);
                all.filter(|(number, share)| !fits(*number, share)).map(|(it, _)| it).collect()
            })
        })
    }

    /// The share that another server has to have of that slot, of which some have lied; none if the others are too few.
    pub(super) fn share_of(
        &self,
        number: u8,
        parties: Parties,
        place: usize,
        liars: &[u8],
    ) -> Option<Vec<u8>> {
        let honest = self.numbers.iter().copied().zip(self.slot(place));
        let honest = honest.filter(|(number, _)| !liars.contains(number));
        let (numbers, shares): (Vec<_>, Vec<_>) = honest.take(parties.colluding() + 1).unzip();
        let is_enough = numbers.len() > parties.colluding();
        is_enough.then(|| share_of_another::<Gf256>(&numbers, &shares, number)).flatten()
    }
}
