//! The leaf and contents of each block, and a bound on the blocks that the tree can hold.

use std::collections::HashMap;

use oblivio_core::{BucketId, Leaf};
use rand::RngExt;
use rand::rngs::StdRng;

/// An address with its leaf. The block may be absent.
#[derive(Clone, Debug)]
struct Block {
    leaf: u64,
    /// The contents of the block. `None` if the block is absent.
    data: Option<Box<[u8]>>,
}

/// The position map of a run, and the contents that each block must have.
#[derive(Clone, Debug)]
pub struct Blocks {
    leaf_level: u8,
    slots: u32,
    blocks: HashMap<u64, Block>,
    /// For each bucket, the number of blocks that cannot be placed below it: in a leaf, all blocks
    /// mapped to the leaf; elsewhere, the blocks that the bucket's two subtrees cannot hold. A
    /// missing entry means 0.
    load: HashMap<BucketId, u32>,
}

impl Blocks {
    /// Creates a position map without blocks, for a tree with leaves on `leaf_level` and `slots`
    /// slots per bucket.
    pub fn new(leaf_level: u8, slots: u16) -> Self {
        Self { leaf_level, slots: slots.into(), blocks: HashMap::new(), load: HashMap::new() }
    }

    /// Whether the block is present.
    pub fn is_present(&self, address: u64) -> bool {
        self.contents(address).is_some()
    }

    /// The contents of the block, if it is present.
    pub fn contents(&self, address: u64) -> Option<&[u8]> {
        self.blocks.get(&address)?.data.as_deref()
    }

    /// The leaf that an access to `address` reads, if the address has a leaf already.
    pub fn leaf(&self, address: u64) -> Option<u64> {
        self.blocks.get(&address).map(|block| block.leaf)
    }

    /// The leaf that an access to `address` reads. Draws the leaf on first use.
    pub(crate) fn leaf_or_draw(&mut self, address: u64, coins: &mut StdRng) -> u64 {
        let leaves = 1 << self.leaf_level;
        let draw = || Block { leaf: coins.random_range(0..leaves), data: None };
        self.blocks.entry(address).or_insert_with(draw).leaf
    }

    /// Addresses and leaves of all present blocks, in ascending order of addresses.
    pub fn present(&self) -> Vec<(u64, u64)> {
        let is_present = |(address, block): (&u64, &Block)| {
            block.data.is_some().then_some((*address, block.leaf))
        };
        let mut present: Vec<_> = self.blocks.iter().filter_map(is_present).collect();
        present.sort_unstable();
        present
    }

    /// Maps `address` to `leaf` and sets its contents. `None` means that the block is absent.
    pub(crate) fn set(&mut self, address: u64, leaf: u64, data: Option<Box<[u8]>>) {
        self.unload(address);
        if data.is_some() {
            self.add_load(leaf);
        }
        self.blocks.insert(address, Block { leaf, data });
    }

    /// Removes the leaf of a block, and the block itself if it is present.
    pub(crate) fn forget(&mut self, address: u64) {
        self.unload(address);
        self.blocks.remove(&address);
    }

    /// The number of blocks that no eviction can move into the tree.
    pub fn excess(&self) -> u32 {
        self.load_of(BucketId::ROOT).saturating_sub(self.slots)
    }

    /// The [`excess`](Self::excess) if `address` were present and mapped to `leaf`.
    pub(crate) fn excess_with(&mut self, address: u64, leaf: u64) -> u32 {
        let present = self.blocks.get(&address).filter(|block| block.data.is_some());
        let old_leaf = present.map(|block| block.leaf);
        if let Some(old_leaf) = old_leaf {
            self.remove_load(old_leaf);
        }
        self.add_load(leaf);
        let excess = self.excess();
        self.remove_load(leaf);
        if let Some(old_leaf) = old_leaf {
            self.add_load(old_leaf);
        }
        excess
    }

    fn unload(&mut self, address: u64) {
        let present = self.blocks.get(&address).filter(|block| block.data.is_some());
        if let Some(leaf) = present.map(|block| block.leaf) {
            self.remove_load(leaf);
        }
    }

    fn load_of(&self, bucket: BucketId) -> u32 {
        self.load.get(&bucket).copied().unwrap_or(0)
    }

    fn add_load(&mut self, leaf: u64) {
        for level in (0..=self.leaf_level).rev() {
            let load = self.load.entry(BucketId::on_path(Leaf(leaf), level)).or_insert(0);
            *load += 1;
            if *load <= self.slots {
                return;
            }
        }
    }

    fn remove_load(&mut self, leaf: u64) {
        for level in (0..=self.leaf_level).rev() {
            let bucket = BucketId::on_path(Leaf(leaf), level);
            let load = self.load_of(bucket);
            match load.saturating_sub(1) {
                0 => self.load.remove(&bucket),
                less => self.load.insert(bucket, less),
            };
            if load <= self.slots {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// Computes the excess from scratch, from the leaves upwards.
    fn excess(blocks: &Blocks) -> u32 {
        let mut overflow: HashMap<u64, u32> = HashMap::new();
        for (_, leaf) in blocks.present() {
            *overflow.entry(leaf).or_insert(0) += 1;
        }
        for level in (0..=blocks.leaf_level).rev() {
            let mut above = HashMap::new();
            for (index, count) in overflow {
                let parent = if level == 0 { 0 } else { index & ((1 << (level - 1)) - 1) };
                *above.entry(parent).or_insert(0) += count.saturating_sub(blocks.slots);
            }
            overflow = above;
        }
        overflow.values().sum()
    }

    #[test]
    fn excess_is_kept_up_to_date() {
        let mut coins = StdRng::seed_from_u64(1);
        for (leaf_level, slots) in [(0, 1), (1, 1), (3, 2), (4, 1)] {
            let mut blocks = Blocks::new(leaf_level, slots);
            for _ in 0..2000 {
                let address = coins.random_range(0..40);
                let leaf = coins.random_range(0..1u64 << leaf_level);
                let with = blocks.excess_with(address, leaf);
                let is_present = coins.random_bool(0.7);
                blocks.set(address, leaf, is_present.then(|| [0].into()));
                assert_eq!(blocks.excess(), excess(&blocks));
                if is_present {
                    assert_eq!(blocks.excess(), with);
                }
            }
            (0..40).for_each(|address| blocks.forget(address));
            assert!(blocks.load.is_empty(), "{:?}", blocks.load);
        }
    }
}
