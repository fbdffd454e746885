//! The buckets nearest the root, kept on the client: a dedicated tree-top cache.
//!
//! Storage never sees an access to these levels, and their blocks are neither sealed nor moved. The
//! price is client memory: `2^levels - 1` buckets.

use super::{BlockRoom, Entry, PathPlan, Stash};
use crate::geometry::{BucketId, Geometry, Leaf};

/// The levels `0..levels` of a tree.
pub(crate) struct TreeTop {
    levels: u8,
    buckets: Vec<Vec<Entry>>,
}

impl TreeTop {
    pub(crate) fn new(levels: u8, geometry: &Geometry) -> Self {
        let buckets = (0..(1u64 << levels) - 1)
            .map(|id| Vec::with_capacity(geometry.slots(usize::from(BucketId(id).level()))))
            .collect();
        Self { levels, buckets }
    }

    pub(crate) fn levels(&self) -> u8 {
        self.levels
    }

    /// Moves all blocks on the path to `leaf` into the stash.
    pub(crate) fn load(&mut self, leaf: Leaf, stash: &mut Stash) {
        for level in 0..self.levels {
            for entry in self.bucket_mut(leaf, level).drain(..) {
                stash.insert(entry);
            }
        }
    }

    /// Stores what was planned for the path to `leaf`, which [`Self::load`] has emptied.
    pub(crate) fn store(
        &mut self,
        leaf: Leaf,
        plan: &PathPlan,
        geometry: &Geometry,
        blocks: &mut BlockRoom,
    ) {
        for level in 0..self.levels {
            let bucket = self.bucket_mut(leaf, level);
            for entry in plan.blocks(usize::from(level), geometry) {
                bucket.push(Entry { place: blocks.settle(entry.place), ..*entry });
            }
        }
    }

    /// Takes the block `address` out of the path to `leaf`, if it is there.
    pub(crate) fn take(&mut self, leaf: Leaf, address: u64) -> Option<Entry> {
        (0..self.levels).find_map(|level| {
            let bucket = self.bucket_mut(leaf, level);
            let slot = bucket.iter().position(|entry| entry.address == address)?;
            Some(bucket.remove(slot))
        })
    }

    /// Whether `bucket` is kept here and has a free slot.
    pub(crate) fn has_room(&self, bucket: BucketId, geometry: &Geometry) -> bool {
        let slots = || geometry.slots(usize::from(bucket.level()));
        self.buckets.get(bucket.0 as usize).is_some_and(|entries| entries.len() < slots())
    }

    /// Adds a block to a bucket that [has room](Self::has_room).
    pub(crate) fn insert(&mut self, bucket: BucketId, entry: Entry) {
        self.buckets[bucket.0 as usize].push(entry);
    }

    /// Drops the blocks that are not to be kept, and frees their places.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool, blocks: &mut BlockRoom) {
        for bucket in &mut self.buckets {
            bucket.retain(|entry| {
                let kept = keep(entry);
                if !kept {
                    blocks.give_back(entry.place);
                }
                kept
            });
        }
    }

    /// Every block, with its bucket.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BucketId, &Entry)> {
        (0..)
            .map(BucketId)
            .zip(&self.buckets)
            .flat_map(|(id, bucket)| bucket.iter().map(move |entry| (id, entry)))
    }

    fn bucket_mut(&mut self, leaf: Leaf, level: u8) -> &mut Vec<Entry> {
        &mut self.buckets[BucketId::on_path(leaf, level).0 as usize]
    }
}
