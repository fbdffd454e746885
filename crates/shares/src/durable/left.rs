//! What is left of a tree whose shares may be damaged, or missing: each slot, from those servers that answer.

use oblivio_core::{BucketId, Error, ErrorKind};

use super::agreed::Agreed;
use super::fetch::{Fetched, fetch_each};
use super::servers::{self, TreeServers};
use super::walk::{DO_NOT_FIT, buckets_with_slots, slots};
use crate::answers::choices;
use crate::field::Gf256;
use crate::message::Slots;
use crate::sharing::{Parties, recover};
use crate::tree::Tree;

/// What becomes of what a server does not give back that is not what it should be.
pub(super) const OTHERS_ARE_READ: &str = "What is left is read from the others";

/// What is in a slot.
pub(super) enum Held<T> {
    Block(T),
    /// Zeros, or a block that does not count any more.
    Nothing,
    /// What was never written.
    Damaged,
}

/// A tree that is read, at a point that enough servers have.
pub(super) struct Left<'l> {
    pub(super) parties: Parties,
    pub(super) tree: Tree,
    /// Bytes of a slot, as it is fetched.
    pub(super) slot_bytes: usize,
    pub(super) agreed: &'l Agreed,
}

impl Left<'_> {
    /// Hands over each block. `held` says what a slot of a bucket holds. `damaged` is told what is wrong, once for each bucket, and `progress` when it is read. Answers whether each slot
    /// held a block or nothing.
    pub(super) fn read<T>(
        &self,
        servers: &mut TreeServers<'_>,
        held: &dyn Fn(BucketId, &[u8]) -> Held<T>,
        take: &mut dyn FnMut(T),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(),
    ) -> bool {
        let mut is_whole = true;
        for bucket in buckets_with_slots(self.tree, self.agreed.at) {
            let mut trouble = None;
            for run in self.runs(bucket) {
                let asked = self.agreed.asked_for(run);
                let mut fetched = fetch_each(servers, &asked, run, self.slot_bytes);
                let failed = std::mem::take(&mut fetched.failed);
                if !failed.is_empty() {
                    trouble = Some(servers::failure(&**servers, failed, OTHERS_ARE_READ));
                }
                for place in 0..run.count {
                    let decoded = fetched.decoded(self.parties, place);
                    if !decoded.is_ok_and(|decoded| decoded.liars.is_empty()) {
                        trouble = Some(corrupt(DO_NOT_FIT));
                    }
                    match self.held(&fetched, place, &|slot| held(bucket, slot)) {
                        Held::Block(block) => take(block),
                        Held::Nothing => (),
                        Held::Damaged => {
                            is_whole = false;
                            trouble = Some(corrupt("a slot holds no block"));
                        }
                    }
                }
            }
            trouble.iter().for_each(&mut *damaged);
            progress();
        }
        is_whole
    }

    /// All slots of a bucket. Of no run a server has some slots and not all of them.
    fn runs(&self, bucket: BucketId) -> Vec<Slots> {
        let at_once = Slots::at_once(self.slot_bytes);
        let ends = self.agreed.ends(bucket, slots(self.tree, self.agreed.at, bucket));
        let starts = [0].into_iter().chain(ends.iter().copied());
        let parts = starts.zip(ends.iter().copied());
        let runs = parts.flat_map(|(start, end)| {
            let of_part = Slots::runs(bucket, end - start, at_once);
            of_part.map(move |run| Slots { first: start + run.first, ..run })
        });
        runs.collect()
    }

    /// The block that some of the shares of a slot give.
    fn held<T>(&self, fetched: &Fetched, place: usize, held: &dyn Fn(&[u8]) -> Held<T>) -> Held<T> {
        let mut all = Held::Damaged;
        for slot in candidates(self.parties, fetched, place) {
            match held(&slot) {
                Held::Block(block) => return Held::Block(block),
                Held::Nothing => all = Held::Nothing,
                Held::Damaged => (),
            }
        }
        all
    }
}

fn corrupt(what: &str) -> Error {
    let message = format!("{what}: one of the share servers lies, or its shares are damaged");
    Error::new(ErrorKind::Corrupt, message)
}

/// What may be in a slot: what each few of the shares give that are enough.
fn candidates(parties: Parties, fetched: &Fetched, place: usize) -> impl Iterator<Item = Vec<u8>> {
    let (numbers, shares) = (&fetched.numbers, fetched.slot(place));
    choices(numbers.len(), parties.colluding() + 1).into_iter().filter_map(move |chosen| {
        let (places, chosen): (Vec<_>, Vec<_>) =
            chosen.iter().map(|i| (numbers[*i], shares[*i])).unzip();
        recover::<Gf256>(&places, &chosen)
    })
}
