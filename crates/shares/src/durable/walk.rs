//! Checks all slots of all servers. The shares of each slot must fit each other, and the slots must
//! hold exactly the blocks that the client and the map name.

use oblivio_core::seal::BlockSealer;
use oblivio_core::{BucketId, Error, ErrorKind};
use zeroize::Zeroizing;

use super::access::INVALID_LEAF;
use super::array::ShareArray;
use super::client_state::Positions;
use super::fetch::{Fetched, fetch};
use super::opener::{LiveBlock, Opener};
use super::participants::BRING_BACK;
use super::servers;
use crate::map_trees::map_block::Mapped;
use crate::message::{Slots, TreePoint};
use crate::tree::Tree;

/// The error if shares of a slot contradict each other.
pub(super) const SHARES_DO_NOT_FIT: &str = "shares of a block do not fit each other";

/// The error for a wrong share of a known server.
pub(super) fn does_not_fit(server: &str) -> Error {
    let message = format!(
        "a share of {server} does not fit the shares of the others: rebuild its shares anyway \
         (`oblivio shares repair`)"
    );
    Error::new(ErrorKind::Corrupt, message)
}

/// The number of slots of a bucket that may hold blocks at point `at`. The other slots are zeros or
/// stale. Public.
pub(super) fn slots(tree: Tree, at: TreePoint, bucket: BucketId) -> usize {
    if bucket == BucketId::ROOT {
        return at.written;
    }
    if tree.is_in_use(bucket, at.evictions) { tree.slots() } else { 0 }
}

/// The buckets that may hold blocks at point `at`, the root first.
pub(super) fn buckets_with_slots(tree: Tree, at: TreePoint) -> impl Iterator<Item = BucketId> {
    tree.buckets().filter(move |bucket| slots(tree, at, *bucket) > 0)
}

/// A checksum of a set of blocks: their number, and the sum of a keyed hash of each address and map
/// entry. Servers do not know the key, so different sets have the same sum only by chance. Takes
/// constant memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    blocks: u64,
    sum: u128,
}

/// For each occupied slot, its bucket, its index and the address of its block, sorted by bucket and
/// slot. Empty if the client does not know positions. Secret.
type OccupiedSlots = Zeroizing<Vec<[u64; 3]>>;

impl ShareArray {
    /// Checks all slots of all trees. Shares must fit each other, and each tree must hold exactly
    /// the blocks that the tree checked before it names (for the last tree, the client), once each,
    /// as last written. Returns the number of blocks with contents.
    pub(super) fn check_all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        self.query_progress()?;
        if self.trust.is_any_answer_wrong() {
            return Err(self.corrupt(0, "share servers have given wrong answers"));
        }
        let at = self.state.at();
        self.catch_up(at)?;
        if let Some(participants) =
            self.participants.iter().find(|participants| !participants.are_all_current())
        {
            let advice = format!("A check needs all servers: {BRING_BACK}");
            return Err(participants.error(&*self.store, &advice));
        }
        let last = self.trees.len() - 1;
        let mut expected = Sum::default();
        for (block, mapped) in self.state.all_mapped() {
            self.add(&mut expected, last, block, mapped);
        }
        let places = match &self.state.positions {
            Positions::OnClient(map) => map.occupied_slots(),
            Positions::InTrees(_) => OccupiedSlots::default(),
        };
        let mut read = 0;
        let mut next = || {
            read += 1;
            progress(read);
        };
        for tree in (0..=last).rev() {
            let [found, named] = self.check_tree(tree, at, &places, &mut next)?;
            if found != expected {
                let what = "share servers do not hold the latest blocks";
                return Err(self.corrupt(tree, what));
            }
            expected = named;
        }
        Ok((0..self.params.blocks).filter(|it| self.state.is_live(*it)).count() as u64)
    }

    fn add(&self, to: &mut Sum, tree: usize, address: u64, Mapped { leaf, write }: Mapped) {
        let entry = Zeroizing::new([tree as u64, address, leaf.0, write].map(u64::to_le_bytes));
        let seed = self.sealer.seed(&[b"entry".as_slice(), &entry.concat()].concat());
        let (low, _) =
            seed.split_first_chunk().map_or(([0; 16], &[][..]), |(it, rest)| (*it, rest));
        to.blocks += 1;
        to.sum = to.sum.wrapping_add(u128::from_le_bytes(low));
    }

    /// Checks the slots of a tree. Returns two checksums: of the tree's blocks, and of the entries
    /// in them, which map the blocks of the next tree.
    fn check_tree(
        &mut self,
        tree: usize,
        at: TreePoint,
        places: &OccupiedSlots,
        next: &mut dyn FnMut(),
    ) -> Result<[Sum; 2], Error> {
        let (shape, slot_bytes) = (self.trees[tree].tree, self.trees[tree].fetched_bytes());
        let parties = self.params.parties;
        let all = vec![true; parties.servers()];
        let [mut found, mut named] = [Sum::default(); 2];
        for bucket in buckets_with_slots(shape, at) {
            let in_bucket = slots(shape, at, bucket);
            for run in Slots::runs(bucket, in_bucket, Slots::at_once(slot_bytes)) {
                let mut servers = self.servers(tree);
                let fetched = fetch(&mut servers, &all, at, run, slot_bytes);
                if !fetched.failed.is_empty() {
                    return Err(servers::failure_error(&*servers, fetched.failed, BRING_BACK));
                }
                for place in 0..run.count {
                    let decoded = fetched.decoded(parties, place).ok();
                    let Some(decoded) = decoded.filter(|decoded| decoded.wrong_servers.is_empty())
                    else {
                        return Err(self.not_fitting(tree, &fetched, place));
                    };
                    let slot = Zeroizing::new(decoded.block);
                    let at = (bucket, run.first + place);
                    let found_in = self.block_in(tree, at, &slot, places);
                    let do_shares_fit = true;
                    let found_in = found_in.map_err(|wrong| {
                        self.suspicious(tree, &wrong, vec![bucket], do_shares_fit)
                    })?;
                    let Some(LiveBlock { address, mapped, block }) = found_in else { continue };
                    self.add(&mut found, tree, address, mapped);
                    self.add_entries(&mut named, tree, address, &block)?;
                }
            }
            next();
        }
        Ok([found, named])
    }

    /// The live block in a slot; `None` if there is none.
    ///
    /// # Errors
    /// A description of the problem, if the slot does not hold what was written.
    fn block_in(
        &self,
        tree: usize,
        (bucket, slot): (BucketId, usize),
        held: &[u8],
        places: &OccupiedSlots,
    ) -> Result<Option<LiveBlock>, String> {
        let map = match &self.state.positions {
            Positions::OnClient(map) => map,
            Positions::InTrees(map) => {
                let Self { sealer, labels, .. } = self;
                let opener = Opener { levels: &map.levels, sealer, labels };
                return opener.block_in(tree, bucket, held);
            }
        };
        let here = [bucket.0, slot as u64];
        let place = places.binary_search_by(|it| it[..2].cmp(&here)).ok();
        let known = place.map(|place| places[place][2]);
        let Some((address, mapped)) = known.and_then(|it| Some((it, map.mapped(it)?))) else {
            return Ok(None);
        };
        let name = self.state.name(tree, Some(address), mapped.write);
        match self.sealer.open(held) {
            Some(opened) if opened.name() == name => {
                let block = Zeroizing::new(opened.bytes().to_vec());
                Ok(Some(LiveBlock { address, mapped, block }))
            }
            _ => Err("a block is not what was written".into()),
        }
    }

    /// The error for a slot whose shares do not fit each other. Names a wrong server, and records
    /// all wrong servers, if the block's seal shows which shares are wrong. Compares only the
    /// sealed part of the slot, without its metadata.
    fn not_fitting(&mut self, tree: usize, fetched: &Fetched, place: usize) -> Error {
        let sealed = self.trees[tree].metadata_bytes..self.trees[tree].slot_bytes;
        let is_sound = |held: &[u8]| is_sealed(&self.sealer, held);
        let wrong =
            fetched.wrong(self.params.parties, place, &sealed, is_sound).unwrap_or_default();
        if let Err(error) = self.record_wrong(&wrong) {
            return error;
        }
        match wrong.first() {
            Some(wrong) => does_not_fit(&self.store.name(usize::from(*wrong) - 1)),
            None => self.corrupt(tree, SHARES_DO_NOT_FIT),
        }
    }

    /// Adds the entries of a map block to the checksum of the next tree.
    fn add_entries(
        &self,
        to: &mut Sum,
        tree: usize,
        address: u64,
        block: &[u8],
    ) -> Result<(), Error> {
        let (Positions::InTrees(map), Some(below)) = (&self.state.positions, tree.checked_sub(1))
        else {
            return Ok(());
        };
        let format = map.levels.level(below).map;
        for entry in 0..format.entries() {
            let mapped = format.get(block, entry);
            let mapped = mapped.map_err(|_| self.corrupt(tree, INVALID_LEAF))?;
            if let Some(mapped) = mapped {
                self.add(to, below, address * format.entries() as u64 + entry as u64, mapped);
            }
        }
        Ok(())
    }
}

/// Whether `held` is valid as the contents of a slot: a sealed block, or zeros.
pub(super) fn is_sealed(sealer: &BlockSealer, held: &[u8]) -> bool {
    held.iter().all(|byte| *byte == 0) || sealer.open(held).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Preset;

    /// The buckets in use follow from the number of evictions: compares the formula with a
    /// simulation of evictions.
    #[test]
    fn buckets_in_use_follow_from_the_number_of_evictions() {
        for height in 1..=5 {
            let tree = Tree::new(height, Preset::SMALL).unwrap();
            let mut holds = std::collections::HashSet::new();
            for evictions in 0..100 {
                let at = TreePoint { evictions, written: 3 };
                for bucket in tree.buckets() {
                    let expected = match bucket.level() {
                        0 => 3,
                        _ if holds.contains(&bucket) => tree.slots(),
                        _ => 0,
                    };
                    assert_eq!(slots(tree, at, bucket), expected, "{bucket} after {evictions}");
                }
                for triplet in tree.triplets(evictions) {
                    holds.remove(&triplet.source);
                    holds.insert(triplet.destination);
                    holds.insert(triplet.sibling);
                }
            }
        }
    }
}
