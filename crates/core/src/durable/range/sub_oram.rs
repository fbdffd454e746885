//! `R_i` of rORAM: a tree, its position map, and the blocks on the client that wait for an eviction
//! to the tree.

use alloc::collections::BTreeSet;

use rand_core::CryptoRng;

use super::params::RangeParams;
use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::posmap::{Table, draw_leaf};
use crate::scheme::{RotatingTrees, StoredTree};
use crate::seal::EraSealer;
use crate::store::BucketStore;

/// The position map of a class: the leaf of the first block of each range. Secret; wiped when
/// dropped.
pub(super) struct RangePositions {
    class: u8,
    leaf_level: u8,
    ranges: u64,
    table: Table,
}

impl RangePositions {
    /// A map in which all ranges are at leaf 0.
    pub(super) fn new(params: &RangeParams, class: u8) -> Result<Self, Error> {
        let (leaf_level, ranges) = (params.leaf_level, params.entries(class));
        Ok(Self { class, leaf_level, ranges, table: Table::new(ranges, leaf_level)? })
    }

    /// Number of ranges.
    pub(super) fn ranges(&self) -> u64 {
        self.ranges
    }

    /// The class `i` of the ranges, which have `2^i` blocks.
    pub(super) fn class(&self) -> u8 {
        self.class
    }

    /// The leaf of the first block of a range.
    pub(super) fn of_range(&self, range: u64) -> Leaf {
        Leaf(self.table.get(range).unwrap_or_default())
    }

    /// Sets the leaf of the first block of a range.
    ///
    /// # Panics
    /// If there is no such range.
    pub(super) fn set(&mut self, range: u64, first: Leaf) {
        self.table.set(range, first.0);
    }

    /// The leaf of a block: the leaf of the first block of its range, plus the block's index in the
    /// range.
    pub(super) fn of_block(&self, address: u64) -> Leaf {
        let within = address & ((1 << self.class) - 1);
        let first = self.of_range(address >> self.class);
        Leaf((first.0 + within) & ((1 << self.leaf_level) - 1))
    }
}

pub(super) struct SubOram {
    pub(super) tree: StoredTree,
    pub(super) positions: RangePositions,
    /// The waiting blocks. Each is a pair: the index of the first bucket in storage on the block's
    /// path, and the block's address. Secret.
    waiting: BTreeSet<(u64, u64)>,
    first_level: u8,
}

impl SubOram {
    pub(super) fn new(
        params: &RangeParams,
        class: u8,
        trees: RotatingTrees,
        sealer: EraSealer,
        store: &dyn BucketStore,
    ) -> Result<Self, Error> {
        Ok(Self {
            tree: StoredTree::new(&params.tree(trees)?, trees, sealer, store)?,
            positions: RangePositions::new(params, class)?,
            waiting: BTreeSet::new(),
            first_level: params.tree_top_levels,
        })
    }

    /// Draws a fresh leaf for a range.
    pub(super) fn draw(&self, coins: &mut impl CryptoRng) -> Leaf {
        draw_leaf(coins, self.positions.leaf_level)
    }

    /// Number of waiting blocks.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a block on the client that waits for an eviction to the tree.
    pub(super) fn await_eviction(&mut self, address: u64) {
        self.waiting.insert((self.first_stored_bucket(address), address));
    }

    /// Removes a block from the waiting blocks, because it no longer waits or its leaf is about to
    /// change.
    pub(super) fn forget_waiting(&mut self, address: u64) {
        self.waiting.remove(&(self.first_stored_bucket(address), address));
    }

    /// The waiting blocks whose first bucket in storage is on the path to a leaf.
    pub(super) fn waiting_for(&self, leaf: Leaf) -> impl Iterator<Item = u64> {
        let bucket = BucketId::on_path(leaf, self.first_level).index();
        self.waiting.range((bucket, 0)..=(bucket, u64::MAX)).map(|(_, address)| *address)
    }

    fn first_stored_bucket(&self, address: u64) -> u64 {
        BucketId::on_path(self.positions.of_block(address), self.first_level).index()
    }
}
