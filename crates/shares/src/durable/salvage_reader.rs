//! Reads a tree whose shares may be damaged or missing. Each slot is read from all servers that
//! answer.

use oblivio_core::{BucketId, Error, ErrorKind};

use super::fetch::{Fetched, fetch_each};
use super::quorum_point::QuorumPoint;
use super::servers::{self, TreeServers};
use super::walk::{SHARES_DO_NOT_FIT, buckets_with_slots, slots};
use crate::answers::choices;
use crate::field::Gf256;
use crate::message::Slots;
use crate::sharing::{Parties, recover};
use crate::tree::Tree;

/// The advice if a server fails during a salvage.
pub(super) const OTHERS_ARE_READ: &str = "The remaining data is read from the other servers";

/// The contents of a slot, as recovered from its shares.
pub(super) enum SlotContents<T> {
    Block(T),
    /// The slot holds zeros or a stale block.
    Empty,
    /// The shares recover neither a valid block, nor a stale block, nor zeros.
    Damaged,
}

/// A tree, read at a point that enough servers have.
pub(super) struct SalvageReader<'l> {
    pub(super) parties: Parties,
    pub(super) tree: Tree,
    /// Bytes of a slot in an answer to a fetch.
    pub(super) slot_bytes: usize,
    pub(super) agreed: &'l QuorumPoint,
}

impl SalvageReader<'_> {
    /// Passes each live block of the tree to `take`, as decoded by `decode`. `damaged` is called
    /// with at most one problem per bucket, and `progress` after each bucket. Returns whether no
    /// slot was damaged.
    pub(super) fn read<T>(
        &self,
        servers: &mut TreeServers<'_>,
        decode: &dyn Fn(BucketId, &[u8]) -> SlotContents<T>,
        take: &mut dyn FnMut(T),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(),
    ) -> bool {
        let mut is_whole = true;
        for bucket in buckets_with_slots(self.tree, self.agreed.at) {
            let mut problem = None;
            for run in self.runs(bucket) {
                let asked = self.agreed.request_points_for(run);
                let mut fetched = fetch_each(servers, &asked, run, self.slot_bytes);
                let failed = std::mem::take(&mut fetched.failed);
                if !failed.is_empty() {
                    problem = Some(servers::failure_error(&**servers, failed, OTHERS_ARE_READ));
                }
                for place in 0..run.count {
                    let decoded = fetched.decoded(self.parties, place);
                    if !decoded.is_ok_and(|decoded| decoded.wrong_servers.is_empty()) {
                        problem = Some(corrupt(SHARES_DO_NOT_FIT));
                    }
                    match self.contents(&fetched, place, &|slot| decode(bucket, slot)) {
                        SlotContents::Block(block) => take(block),
                        SlotContents::Empty => (),
                        SlotContents::Damaged => {
                            is_whole = false;
                            problem = Some(corrupt("a slot holds no valid block"));
                        }
                    }
                }
            }
            problem.iter().for_each(&mut *damaged);
            progress();
        }
        is_whole
    }

    /// Divides the slots of a bucket into runs, so that each server has all slots of a run or none.
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

    /// Returns the first valid block that *t* + 1 shares of a slot recover. If there is none, the
    /// slot is empty if some shares recover an empty slot, and damaged otherwise.
    fn contents<T>(
        &self,
        fetched: &Fetched,
        place: usize,
        decode: &dyn Fn(&[u8]) -> SlotContents<T>,
    ) -> SlotContents<T> {
        let mut all = SlotContents::Damaged;
        for slot in candidates(self.parties, fetched, place) {
            match decode(&slot) {
                SlotContents::Block(block) => return SlotContents::Block(block),
                SlotContents::Empty => all = SlotContents::Empty,
                SlotContents::Damaged => (),
            }
        }
        all
    }
}

fn corrupt(what: &str) -> Error {
    let message = format!("{what}: a share server lies, or its shares are damaged");
    Error::new(ErrorKind::Corrupt, message)
}

/// The candidates for the contents of a slot: for each set of *t* + 1 shares, the value that they
/// recover.
fn candidates(parties: Parties, fetched: &Fetched, place: usize) -> impl Iterator<Item = Vec<u8>> {
    let (numbers, shares) = (&fetched.numbers, fetched.slot(place));
    choices(numbers.len(), parties.colluding() + 1).into_iter().filter_map(move |chosen| {
        let (places, chosen): (Vec<_>, Vec<_>) =
            chosen.iter().map(|i| (numbers[*i], shares[*i])).unzip();
        recover::<Gf256>(&places, &chosen)
    })
}
