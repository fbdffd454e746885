//! A tree of tags: it holds which block is in which slot, but no contents.
//!
//! A simulation needs no more of a tree. A slot takes eight plaintext bytes. Nothing is sealed,
//! opened or checked, so a path costs little more than its accesses to memory.

#[cfg(feature = "std")]
mod image;
mod moves;
mod subtree_layout;
mod trips;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use self::moves::MoveReporter;
pub use self::moves::{BlockMove, Origin};
use self::subtree_layout::SubtreeLayout;
use super::TreeConfig;
use super::client::Client;
use crate::error::{Error, ErrorKind};
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::memory::Region;
use crate::stash::TreeTopKind;

/// The slots of a whole tree, for [`PathScheme::of_tags`](super::PathScheme::of_tags) and
/// [`RawScheme::of_tags`](super::RawScheme::of_tags).
pub struct TagTree {
    geometry: Geometry,
    capacity: u64,
    /// The first level that is in this tree. Levels above it are kept on the client, and are empty
    /// here.
    first_level: u8,
    /// The slots, packed by [`Self::pack`]. In a bucket, blocks come before dummies.
    slots: Region,
    layout: SubtreeLayout,
    /// A callback that receives the leaf of each path that is written back.
    report: Option<Box<dyn FnMut(Leaf)>>,
    /// Reports the move of each block; `None` if no caller has asked for it.
    moves: Option<MoveReporter>,
}

/// The slot of a dummy. It is zero, so fresh memory holds dummies.
const DUMMY: u64 = 0;

/// log₂ of the number of parts in which a tree is filled, one after the other. The buckets of a
/// part fit a processor's cache.
const FILL_PART_BITS: u8 = 8;

type Slot = [u8; size_of::<u64>()];

impl TagTree {
    /// An empty tree and its client, for a scheme that leaves up to `between_evictions` more blocks
    /// in the stash before an eviction.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`], also for blocks with bytes.
    pub(super) fn with_client(
        config: &TreeConfig,
        between_evictions: usize,
    ) -> Result<(Self, Client), Error> {
        if config.block_bytes != 0 {
            let message = "a tree of tags holds no bytes: use a store, or blocks of 0 bytes";
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        }
        config.shape()?;
        let config = &with_dedicated_top_in_tree(config);
        Ok((Self::new(config)?, Client::new(config, between_evictions)?))
    }

    /// An empty tree.
    pub(super) fn new(config: &TreeConfig) -> Result<Self, Error> {
        let (geometry, capacity) = (config.geometry.clone(), config.capacity);
        let tag_bits = capacity.ilog2() + 1 + u32::from(geometry.leaf_level());
        let layout = SubtreeLayout::new(&geometry);
        let bytes = layout.slots.checked_mul(size_of::<Slot>() as u64);
        // One bit must stay free, because packing adds 1.
        let slots = bytes.filter(|_| tag_bits < u64::BITS).and_then(|b| Region::new(b).ok());
        let Some(slots) = slots else {
            let message = "no memory for the tags of the whole tree: use a smaller tree";
            return Err(Error::new(ErrorKind::InvalidConfig, message));
        };
        Ok(Self {
            geometry,
            capacity,
            first_level: config.tree_top_levels,
            slots,
            layout,
            report: None,
            moves: None,
        })
    }

    /// A tree of `blocks`, each in the deepest free slot of its path, and the blocks that found no
    /// free slot.
    ///
    /// # Errors
    /// If an address or leaf does not exist, or memory cannot be allocated.
    pub(super) fn filled(
        config: &TreeConfig,
        blocks: &mut dyn Iterator<Item = (u64, Leaf)>,
    ) -> Result<(Self, Vec<(u64, Leaf)>), Error> {
        let mut tree = Self::new(config)?;
        let shift = tree.layout.last_root_level.saturating_sub(FILL_PART_BITS);
        let mut parts = vec![Vec::new(); 1 << FILL_PART_BITS];
        for (address, leaf) in blocks {
            if address >= tree.capacity || !tree.geometry.contains_leaf(leaf) {
                let message = "there is no such address, or no such leaf, in this tree";
                return Err(Error::new(ErrorKind::InvalidRequest, message));
            }
            parts[(leaf.0 >> shift) as usize % (1 << FILL_PART_BITS)]
                .push(tree.pack(address, leaf));
        }
        let tags = parts.into_iter().flatten();
        let left = tags.filter_map(|tag| tree.put_deepest(tag)).collect();
        Ok((tree, left))
    }

    /// Sets the callback for each path that is written back.
    pub(super) fn observe_paths(&mut self, report: Box<dyn FnMut(Leaf)>) {
        self.report = Some(report);
    }

    /// The blocks of a bucket.
    pub(super) fn blocks(&self, bucket: BucketId) -> impl Iterator<Item = (u64, Leaf)> {
        let slots = self.slots_of(Leaf(bucket.index()), usize::from(bucket.level()));
        slots.iter().filter_map(|slot| self.unpack(*slot))
    }

    /// Empties a bucket and returns its blocks.
    pub(super) fn drain(&mut self, bucket: BucketId) -> Vec<(u64, Leaf)> {
        let held = self.blocks(bucket).collect();
        self.slots_of_mut(Leaf(bucket.index()), bucket.level().into()).fill(DUMMY.to_le_bytes());
        held
    }

    /// The level of the bucket that holds the block `address`, mapped to `leaf`. `None` if no
    /// bucket holds it.
    pub(super) fn level_of(&self, address: u64, leaf: Leaf) -> Option<u8> {
        let tag = self.pack(address, leaf);
        let is_there = |level: &u8| self.slots_of(leaf, usize::from(*level)).contains(&tag);
        (self.first_level..=self.geometry.leaf_level()).rev().find(is_there)
    }

    /// Removes a block from its bucket on the path to `leaf`. Returns whether the block was on the
    /// path.
    fn take(&mut self, address: u64, leaf: Leaf) -> bool {
        let Some(level) = self.level_of(address, leaf) else { return false };
        let tag = self.pack(address, leaf);
        let bucket = self.slots_of_mut(leaf, level.into());
        let place = bucket.iter().position(|slot| *slot == tag).expect("the bucket holds the tag");
        bucket[place] = DUMMY.to_le_bytes();
        // Keep the blocks before the dummies.
        bucket[place..].rotate_left(1);
        true
    }

    /// Puts a block into the deepest free slot of its path. Returns the block if no slot is free.
    fn put_deepest(&mut self, tag: Slot) -> Option<(u64, Leaf)> {
        let (address, leaf) = self.unpack(tag)?;
        for level in (0..self.layout.levels.len()).rev() {
            let mut slots = self.slots_of_mut(leaf, level).iter_mut();
            if let Some(free) = slots.find(|slot| **slot == DUMMY.to_le_bytes()) {
                *free = tag;
                return None;
            }
        }
        Some((address, leaf))
    }

    /// Packs address and leaf into a little-endian slot. Adds one, so that the slot of a block
    /// never equals [`DUMMY`].
    #[inline]
    fn pack(&self, address: u64, leaf: Leaf) -> Slot {
        pack(self.geometry.leaf_level(), address, leaf).to_le_bytes()
    }

    #[inline]
    fn unpack(&self, slot: Slot) -> Option<(u64, Leaf)> {
        let tag = u64::from_le_bytes(slot).checked_sub(1)?;
        let leaf_level = self.geometry.leaf_level();
        Some((tag >> leaf_level, Leaf(tag & ((1 << leaf_level) - 1))))
    }

    /// The slots of the bucket on `level` of the path to `leaf`.
    #[inline]
    fn slots_of(&self, leaf: Leaf, level: usize) -> &[Slot] {
        let level = &self.layout.levels[level];
        &self.slots.bytes().as_chunks().0[level.bucket(leaf)..][..level.bucket_slots]
    }

    fn slots_of_mut(&mut self, leaf: Leaf, level: usize) -> &mut [Slot] {
        let level = self.layout.levels[level];
        &mut self.slots.bytes_mut().as_chunks_mut().0[level.bucket(leaf)..][..level.bucket_slots]
    }
}

/// The configuration for a tree of tags. If the tree top is dedicated, its levels become part of
/// this tree, so that all buckets of tags are handled alike.
fn with_dedicated_top_in_tree(config: &TreeConfig) -> TreeConfig {
    let tree_top_levels = match config.tree_top {
        TreeTopKind::Dedicated => 0,
        TreeTopKind::SetAssociative { .. } => config.tree_top_levels,
    };
    TreeConfig { tree_top_levels, ..config.clone() }
}

/// Packs address and leaf into a number: see [`TagTree::pack`]. The result is never [`DUMMY`] for a
/// block of a tree; it is arbitrary for a dummy.
#[inline]
fn pack(leaf_level: u8, address: u64, leaf: Leaf) -> u64 {
    (address << leaf_level | leaf.0).wrapping_add(1)
}
