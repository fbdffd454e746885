//! All slots of all servers: whether what slots hold is what blocks of the map say.

use oblivio_core::seal::{BlockSealer, OpenedBlock};
use oblivio_core::{BucketId, Error};
use zeroize::Zeroizing;

use super::super::fetch::{Fetched, fetch};
use super::super::parts::BRING_BACK;
use super::super::servers;
use super::super::walk::{DO_NOT_FIT, buckets_with_slots, does_not_fit, is_sealed, slots};
use super::access::{address_in, is_dummy_of};
use super::array::MappedArray;
use super::labels::Labels;
use crate::client::{ClientError, Occupant};
use crate::field::{Field, Gf256};
use crate::map_trees::Levels;
use crate::map_trees::map_block::Mapped;
use crate::map_trees::metadata::{Metadata, MetadataFormat};
use crate::message::{Point, Slots};

/// Blocks, in any order: how many, and a sum over all of them of what follows from a key, the block and its entry. Servers do not know the key, so two sums are the same if the
/// blocks are, and else by chance alone. It takes no memory for each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    blocks: u64,
    sum: u128,
}

/// A block in a slot that counts, and what is to be said of it in the map.
pub(super) struct Found {
    pub(super) address: u64,
    pub(super) mapped: Mapped,
    pub(super) block: Zeroizing<Vec<u8>>,
}

impl MappedArray {
    fn opener(&self) -> Opener<'_> {
        Opener { levels: &self.levels, sealer: &self.sealer, labels: &self.labels }
    }

    fn add(&self, to: &mut Sum, tree: usize, address: u64, Mapped { leaf, write }: Mapped) {
        let entry = Zeroizing::new([tree as u64, address, leaf.0, write].map(u64::to_le_bytes));
        let seed = self.sealer.seed(&[b"entry".as_slice(), &entry.concat()].concat());
        let (low, _) =
            seed.split_first_chunk().map_or(([0; 16], &[][..]), |(it, rest)| (*it, rest));
        to.blocks += 1;
        to.sum = to.sum.wrapping_add(u128::from_le_bytes(low));
    }

    /// Checks all slots of all trees: that shares fit each other, and that each tree holds the blocks of which the one before it tells, each once, as they were written last, and no
    /// others. Returns how many blocks have contents.
    pub(super) fn check_all(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        self.look()?;
        let at = self.known.point_after(self.known.accesses());
        let mut expected = Sum::default();
        for (block, mapped) in self.known.all_mapped() {
            self.add(&mut expected, self.trees.len() - 1, block, mapped);
        }
        let mut read = 0;
        for tree in (0..self.trees.len()).rev() {
            let [found, told] = self.check_tree(tree, at, &mut read, progress)?;
            if found != expected {
                let what = "share servers do not hold the blocks that were written last";
                return Err(self.corrupt(what));
            }
            expected = told;
        }
        let live = &self.known.live;
        Ok((0..self.params.blocks).filter(|it| live.contains(*it)).count() as u64)
    }

    /// What a tree holds, and what its blocks tell of the next.
    fn check_tree(
        &mut self,
        tree: usize,
        at: Point,
        read: &mut u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<[Sum; 2], Error> {
        let level = *self.levels.level(tree);
        // Each has its mark behind it.
        let (parties, slot_bytes) = (self.params.parties, level.slot_elements() + 1);
        let all = vec![true; parties.servers()];
        let [mut found, mut told] = [Sum::default(); 2];
        for bucket in buckets_with_slots(level.tree, at) {
            let in_bucket = slots(level.tree, at, bucket);
            for run in Slots::runs(bucket, in_bucket, Slots::at_once(slot_bytes)) {
                let mut servers = self.servers(tree);
                let fetched = fetch(&mut servers, &all, at, run, slot_bytes);
                if !fetched.failed.is_empty() {
                    return Err(servers::failure(&servers, fetched.failed, BRING_BACK));
                }
                for place in 0..run.count {
                    let decoded = fetched.decoded(parties, place).ok();
                    let Some(decoded) = decoded.filter(|decoded| decoded.liars.is_empty()) else {
                        return Err(self.not_fitting(tree, &fetched, place));
                    };
                    let slot = Zeroizing::new(decoded.block);
                    let found_in = self.opener().block_in(tree, bucket, &slot);
                    let do_shares_fit = true;
                    let found_in = found_in.map_err(|wrong| {
                        self.suspicious(&wrong, at, vec![bucket], do_shares_fit)
                    })?;
                    let Some(Found { address, mapped, block }) = found_in else { continue };
                    self.add(&mut found, tree, address, mapped);
                    self.add_told(&mut told, tree, address, &block)?;
                }
            }
            *read += 1;
            progress(*read);
        }
        Ok([found, told])
    }

    /// What is wrong where shares of a slot do not fit each other. It is said whose, if the seal of its block tells: what slots say before that is not sealed.
    fn not_fitting(&mut self, tree: usize, fetched: &Fetched, place: usize) -> Error {
        let level = *self.levels.level(tree);
        let sealed = level.metadata_elements..level.slot_elements();
        let is_sound = |held: &[u8]| is_sealed(&self.sealer, held);
        let wrong =
            fetched.wrong(self.params.parties, place, &sealed, is_sound).unwrap_or_default();
        if let Err(error) = self.trust.found_wrong(&*self.store, &wrong) {
            return error;
        }
        match wrong.first() {
            Some(wrong) => does_not_fit(&self.store.name(usize::from(*wrong) - 1)),
            None => self.corrupt(DO_NOT_FIT),
        }
    }

    /// What a block of the map tells of blocks of the tree after it.
    fn add_told(&self, to: &mut Sum, tree: usize, address: u64, block: &[u8]) -> Result<(), Error> {
        let Some(below) = tree.checked_sub(1) else { return Ok(()) };
        let map = self.levels.level(below).map;
        for entry in 0..map.entries() {
            let mapped = map.get(block, entry);
            let mapped =
                mapped.map_err(|_| self.corrupt("a block of the position map says no leaf"))?;
            if let Some(mapped) = mapped {
                self.add(to, below, address * map.entries() as u64 + entry as u64, mapped);
            }
        }
        Ok(())
    }
}

/// What tells which block a slot holds.
pub(in crate::durable) struct Opener<'a> {
    pub(in crate::durable) levels: &'a Levels,
    pub(in crate::durable) sealer: &'a BlockSealer,
    pub(in crate::durable) labels: &'a Labels,
}

impl Opener<'_> {
    /// The block in a slot; none if there is none that counts.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn block_in(
        &self,
        tree: usize,
        bucket: BucketId,
        slot: &[u8],
    ) -> Result<Option<Found>, String> {
        let (said, sealed) = self.split(tree, slot).map_err(|error| error.to_string())?;
        let counts = said.filter(|it| !it.is_taken && bucket.is_on_path(it.occupant.leaf));
        let Some(occupant) = counts.map(|said| said.occupant) else { return Ok(None) };
        let opened = self.open(tree, occupant, sealed);
        let (address, opened) = opened.ok_or("a block is not what was written")?;
        let mapped = Mapped { leaf: occupant.leaf, write: opened.name().number };
        let block = Zeroizing::new(opened.bytes().to_vec());
        Ok(Some(Found { address, mapped, block }))
    }

    /// Whether a client has written a slot so: all zeros, a block with its label, or a dummy
    /// without one. The leaf is not sealed, and any is taken.
    pub(in crate::durable) fn was_written(&self, tree: usize, slot: &[u8]) -> bool {
        slot.iter().all(|byte| *byte == 0)
            || match self.split(tree, slot) {
                Ok((Some(said), sealed)) => self.open(tree, said.occupant, sealed).is_some(),
                Ok((None, sealed)) => {
                    let opened = self.sealer.open(sealed);
                    opened.is_some_and(|opened| is_dummy_of(tree, opened.name()))
                }
                Err(_) => false,
            }
    }

    /// What a slot says of its block, and the sealed block. The mark stands behind it.
    fn split<'s>(
        &self,
        tree: usize,
        slot: &'s [u8],
    ) -> Result<(Option<Metadata>, &'s [u8]), ClientError> {
        let level = self.levels.level(tree);
        let (slot, mark) = slot.split_at(level.slot_elements());
        let (said, sealed) = slot.split_at(level.metadata_elements);
        let mut said = Zeroizing::new(said.to_vec());
        if let (Some(held), Some(mark)) = (said.last_mut(), mark.first()) {
            *held = Gf256::add(*held, *mark);
        }
        let format = MetadataFormat::<Gf256>::new(level.tree, level.labels);
        Ok((format.get(&said)?, sealed))
    }

    /// The address and the contents of a block; none if it is another block than its label says.
    fn open(&self, tree: usize, said: Occupant, sealed: &[u8]) -> Option<(u64, OpenedBlock)> {
        let opened = self.sealer.open(sealed)?;
        let blocks = self.levels.level(tree).blocks;
        let address = address_in(tree, opened.name()).filter(|it| *it < blocks)?;
        let label = self.labels.of(tree, address) as usize;
        (label == said.label).then_some((address, opened))
    }
}
