//! The buckets nearest the root, kept on the client.
//!
//! Storage never sees an access to these levels, and their blocks are neither sealed nor copied.
//! The cost is client memory for `2^levels - 1` buckets.

mod buckets;
mod dedicated;
mod kind;
mod set_associative;
#[cfg(test)]
mod tests;

pub use kind::TreeTopKind;
pub(crate) use set_associative::{set_of, sets};

use super::{BlockArena, Entry, PathPlan, Stash};
use crate::geometry::{BucketId, Geometry, Leaf};
use dedicated::Dedicated;
use set_associative::SetAssociative;

/// The buckets of the levels `0..levels` of a tree.
pub(crate) struct TreeTop {
    levels: u8,
    blocks: Blocks,
}

/// The blocks, in one of the two organizations.
enum Blocks {
    Dedicated(Dedicated),
    SetAssociative(SetAssociative),
}

impl TreeTop {
    pub(crate) fn new(kind: TreeTopKind, levels: u8, geometry: &Geometry) -> Self {
        let blocks = match kind {
            TreeTopKind::Dedicated => Blocks::Dedicated(Dedicated::new(levels, geometry)),
            TreeTopKind::SetAssociative { ways } => {
                Blocks::SetAssociative(SetAssociative::new(levels, ways, geometry))
            }
        };
        Self { levels, blocks }
    }

    pub(crate) fn levels(&self) -> u8 {
        self.levels
    }

    /// Whether PushToLeaf must visit the newest blocks first. This is necessary if sets can be
    /// full: blocks that were on the path get their slots and entries back before other blocks can
    /// take them. See [`TreeTopKind::growth_max`].
    pub(crate) fn wants_newest_first(&self) -> bool {
        matches!(self.blocks, Blocks::SetAssociative(_))
    }

    /// Moves all blocks of the tree top that are on the path to `leaf` into the stash, beginning at
    /// the root, and frees their entries.
    pub(crate) fn load(&mut self, leaf: Leaf, stash: &mut Stash) {
        match &mut self.blocks {
            Blocks::Dedicated(top) => top.load(leaf, |entry| stash.insert(entry)),
            Blocks::SetAssociative(top) => top.load(leaf, |entry| stash.insert(entry)),
        }
    }

    /// Reserves an entry for the block `address`. The block needs an entry as well as a free slot
    /// on the levels of the tree top. Returns whether an entry was free. [`Self::store`] uses the
    /// reservation.
    #[inline]
    pub(crate) fn reserve(&mut self, address: u64) -> bool {
        match &mut self.blocks {
            Blocks::Dedicated(_) => true,
            Blocks::SetAssociative(top) => top.reserve(address),
        }
    }

    /// Stores the blocks planned for the path to `leaf`, which [`Self::load`] has emptied.
    pub(crate) fn store(&mut self, leaf: Leaf, plan: &PathPlan, blocks: &mut BlockArena) {
        for level in 0..self.levels {
            let bucket = BucketId::on_path(leaf, level);
            for entry in plan.blocks(usize::from(level)) {
                self.put(bucket, Entry { place: blocks.make_permanent(entry.place), ..*entry });
            }
        }
    }

    /// The block `address`, if it is in the tree top and can be found by its address.
    pub(crate) fn find(&self, address: u64) -> Option<&Entry> {
        match &self.blocks {
            Blocks::Dedicated(_) => None,
            Blocks::SetAssociative(top) => top.find(address),
        }
    }

    /// The bucket of the block `address` mapped to `leaf`, if the block is in the tree top.
    pub(crate) fn bucket_of(&self, leaf: Leaf, address: u64) -> Option<BucketId> {
        match &self.blocks {
            Blocks::Dedicated(top) => top.bucket_of(leaf, address),
            Blocks::SetAssociative(top) => top.bucket_of(address),
        }
    }

    /// Removes the block `address`, if it is in the tree top and can be found by its address.
    pub(crate) fn take_found(&mut self, address: u64) -> Option<Entry> {
        match &mut self.blocks {
            Blocks::Dedicated(_) => None,
            Blocks::SetAssociative(top) => top.take(address),
        }
    }

    /// Removes the block `address` mapped to `leaf`, if it is in the tree top.
    pub(crate) fn take(&mut self, leaf: Leaf, address: u64) -> Option<Entry> {
        match &mut self.blocks {
            Blocks::Dedicated(top) => top.take(leaf, address),
            Blocks::SetAssociative(top) => top.take(address),
        }
    }

    /// Whether `bucket` belongs to the tree top and has room for the block `address`.
    pub(crate) fn has_room(&self, bucket: BucketId, address: u64, geometry: &Geometry) -> bool {
        match &self.blocks {
            Blocks::Dedicated(top) => top.has_room(bucket, geometry),
            Blocks::SetAssociative(top) => top.has_room(bucket, address, geometry),
        }
    }

    /// Adds a block to a bucket that [has room](Self::has_room) for it.
    pub(crate) fn insert(&mut self, bucket: BucketId, entry: Entry) {
        let reserved = self.reserve(entry.address);
        debug_assert!(reserved, "the bucket has room");
        self.put(bucket, entry);
    }

    fn put(&mut self, bucket: BucketId, entry: Entry) {
        match &mut self.blocks {
            Blocks::Dedicated(top) => top.put(bucket, entry),
            Blocks::SetAssociative(top) => top.put(bucket, entry),
        }
    }

    /// Drops the blocks for which `keep` returns false, and frees their places.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool, blocks: &mut BlockArena) {
        let keep = |entry: &Entry| {
            let stays = keep(entry);
            if !stays {
                blocks.free(entry.place);
            }
            stays
        };
        match &mut self.blocks {
            Blocks::Dedicated(top) => top.retain(keep),
            Blocks::SetAssociative(top) => top.retain(keep),
        }
    }

    /// Every block of the tree top with its bucket.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BucketId, &Entry)> {
        let (dedicated, set_associative) = match &self.blocks {
            Blocks::Dedicated(top) => (Some(top.blocks()), None),
            Blocks::SetAssociative(top) => (None, Some(top.blocks())),
        };
        dedicated.into_iter().flatten().chain(set_associative.into_iter().flatten())
    }
}
