//! Reading and writing paths of a tree of tags. Nothing is sealed, and only tags are copied.

use super::{DUMMY, Slot, TagTree, pack};
use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::hint;
use crate::scheme::Location;
use crate::scheme::client::Client;
use crate::scheme::path_io::{BodyCounters, PathTree, PathTrips};
use crate::stash::{BlockArena, Entry, PathPlan, Stash};

/// Number of levels, from the root down, that fit into a processor's cache: 1023 buckets.
const CACHED_LEVELS: usize = 10;

impl PathTree for TagTree {
    type Trips = Self;
}

impl PathTrips for TagTree {
    /// Returns 0, because nothing is sealed.
    fn fresh_counter(&mut self) -> Result<u64, Error> {
        Ok(0)
    }

    fn aes_blocks(&self) -> u64 {
        0
    }

    #[inline]
    fn note_requested(&mut self, address: u64) {
        if let Some(moves) = &mut self.moves {
            moves.requested = address;
        }
    }

    /// Prefetches the buckets of the path to `leaf` below the first [`CACHED_LEVELS`] levels, the
    /// deepest first. A cache probably holds the buckets near the root.
    fn prefetch(&mut self, leaf: Leaf) {
        let slots: &[Slot] = self.slots.bytes().as_chunks().0;
        for level in self.layout.levels.iter().skip(CACHED_LEVELS).rev() {
            hint::prefetch(slots[level.bucket(leaf)..][..level.bucket_slots].as_flattened());
        }
    }

    fn open_path(
        &mut self,
        leaf: Leaf,
        _: BodyCounters,
        blocks: &mut BlockArena,
        stash: &mut Stash,
    ) -> Result<(), Error> {
        let mut arrivals = stash.arrivals();
        let leaf_level = self.geometry.leaf_level();
        let leaf_mask = (1 << leaf_level) - 1;
        let slots = self.slots.bytes().as_chunks().0;
        let first_level = usize::from(self.first_level);
        let mut path_slots = self.geometry.path_slots_above(first_level)..;
        for level in &self.layout.levels[first_level..] {
            let bucket: &[Slot] = &slots[level.bucket(leaf)..][..level.bucket_slots];
            for (slot, path_slot) in bucket.iter().zip(&mut path_slots) {
                let slot = u64::from_le_bytes(*slot);
                let tag = slot.wrapping_sub(1);
                let (address, leaf) = (tag >> leaf_level, Leaf(tag & leaf_mask));
                let place = blocks.in_transit(path_slot);
                arrivals.insert_if(Entry { address, leaf, place }, slot != DUMMY);
            }
        }
        Ok(())
    }

    fn seal_path(
        &mut self,
        leaf: Leaf,
        _: u64,
        _: BodyCounters,
        plan: &PathPlan,
        _: &BlockArena,
    ) -> Result<(), Error> {
        if self.moves.is_some() {
            self.report_moves(leaf, plan);
        }
        let leaf_level = self.geometry.leaf_level();
        let slots = self.slots.bytes_mut().as_chunks_mut().0;
        let first_level = usize::from(self.first_level);
        for (number, level) in (first_level..).zip(&self.layout.levels[first_level..]) {
            let bucket: &mut [Slot] = &mut slots[level.bucket(leaf)..][..level.bucket_slots];
            for (slot, entry) in bucket.iter_mut().zip(plan.bucket(number)) {
                let tag = pack(leaf_level, entry.address, entry.leaf);
                let is_dummy = entry.address == Entry::DUMMY_ADDRESS;
                *slot = if is_dummy { DUMMY } else { tag }.to_le_bytes();
            }
        }
        if let Some(report) = &mut self.report {
            report(leaf);
        }
        Ok(())
    }

    /// Takes a block out of the path. Does not search for a dummy, because its tag may equal an
    /// empty slot.
    fn take_block(
        &mut self,
        leaf: Leaf,
        address: u64,
        _: u64,
        _: u64,
        _: &mut [u8],
    ) -> Result<bool, Error> {
        Ok(address != Entry::DUMMY_ADDRESS && self.take(address, leaf))
    }

    fn visit_blocks(
        &mut self,
        _: BodyCounters,
        _: &mut BlockArena,
        visit: &mut dyn FnMut(Location, u64, Leaf),
    ) -> Result<(), Error> {
        for (number, level) in (0..).zip(&self.layout.levels) {
            for bucket in level.indices().map(|index| BucketId::new(number, index)) {
                self.blocks(bucket).for_each(|(address, leaf)| {
                    visit(Location::Bucket(bucket), address, leaf);
                });
            }
        }
        Ok(())
    }

    fn fill(&mut self, tree: TagTree, _: &Client) -> Result<(), Error> {
        self.slots = tree.slots;
        Ok(())
    }
}
