//! A tree of plaintext buckets, a stash and a position map, for the references of Path ORAM and RAW
//! ORAM.

use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashMap;
use rand_core::CryptoRng;

use super::push_to_leaf;
use crate::geometry::{BucketId, Geometry, Leaf};
use crate::stash::{set_of, sets};

#[derive(Clone)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) leaf: Leaf,
    pub(super) data: Vec<u8>,
}

/// A limit of `ways` blocks per set in the levels `0..levels`.
#[derive(Clone, Copy)]
struct SetLimit {
    levels: u8,
    ways: usize,
    sets: usize,
}

pub(super) struct Tree<R> {
    pub(super) geometry: Geometry,
    block_bytes: usize,
    position_map: HashMap<u64, Leaf>,
    buckets: HashMap<BucketId, Vec<Block>>,
    pub(super) stash: Vec<Block>,
    limit: Option<SetLimit>,
    coins: R,
}

impl<R: CryptoRng> Tree<R> {
    pub(super) fn new(geometry: Geometry, block_bytes: usize, coins: R) -> Self {
        Self {
            geometry,
            block_bytes,
            position_map: HashMap::new(),
            buckets: HashMap::new(),
            stash: Vec::new(),
            limit: None,
            coins,
        }
    }

    pub(super) fn limit_sets(&mut self, levels: u8, ways: u16) {
        let sets = sets(levels, ways, &self.geometry);
        self.limit = Some(SetLimit { levels, ways: usize::from(ways), sets });
    }

    pub(super) fn remap(&mut self, address: u64) -> (Leaf, Leaf) {
        let old = match self.position_map.get(&address) {
            Some(leaf) => *leaf,
            None => self.draw_leaf(),
        };
        let new = self.draw_leaf();
        self.position_map.insert(address, new);
        (old, new)
    }

    fn draw_leaf(&mut self) -> Leaf {
        Leaf(self.coins.next_u64() % self.geometry.leaves())
    }

    /// Moves all blocks of the path into the stash, beginning at the root.
    pub(super) fn read_path(&mut self, leaf: Leaf) {
        for bucket in self.geometry.path(leaf) {
            self.stash.append(self.buckets.entry(bucket).or_default());
        }
    }

    /// Moves one block of the path into the stash, if it is there.
    pub(super) fn take_from_path(&mut self, leaf: Leaf, address: u64) {
        for bucket in self.geometry.path(leaf) {
            let blocks = self.buckets.entry(bucket).or_default();
            if let Some(slot) = blocks.iter().position(|block| block.address == address) {
                self.stash.push(blocks.remove(slot));
            }
        }
    }

    /// Moves as many blocks as possible from the stash into the path, which must be empty.
    pub(super) fn write_path(&mut self, leaf: Leaf) {
        let mut names: Vec<_> =
            self.stash.iter().map(|block| (block.address, block.leaf)).collect();
        if self.limit.is_some() {
            // Newest first, so that blocks that were on the path get their slots back.
            names.reverse();
        }
        let (path, _) = push_to_leaf(names, leaf, &self.geometry, |level, address, path| {
            self.limit.is_none_or(|limit| {
                let planned = path[..usize::from(limit.levels)].iter().flatten();
                let mut near_root = self.near_root(limit.levels);
                near_root.extend(planned.map(|(address, _)| *address));
                let set = |address| set_of(address, limit.sets);
                let of_set = near_root.iter().filter(|other| set(**other) == set(address));
                level >= usize::from(limit.levels) || of_set.count() < limit.ways
            })
        });
        for (bucket, names) in self.geometry.path(leaf).zip(path) {
            for (address, _) in names {
                let i = self.stash.iter().position(|block| block.address == address);
                let block =
                    self.stash.remove(i.expect("PushToLeaf places only blocks of the stash"));
                self.buckets.entry(bucket).or_default().push(block);
            }
        }
    }

    /// The addresses of the blocks in the levels `0..levels`.
    fn near_root(&self, levels: u8) -> Vec<u64> {
        let buckets = self.buckets.iter().filter(|(bucket, _)| bucket.level() < levels);
        buckets.flat_map(|(_, blocks)| blocks).map(|block| block.address).collect()
    }

    /// Maps the block to its new leaf, replaces its contents with `new_data`, if given, and returns
    /// the old contents.
    pub(super) fn serve(&mut self, address: u64, leaf: Leaf, new_data: Option<&[u8]>) -> Vec<u8> {
        let zeros = vec![0; self.block_bytes];
        let found = self.stash.iter().position(|block| block.address == address);
        match (found, new_data) {
            (None, None) => zeros,
            (None, Some(data)) => {
                self.stash.push(Block { address, leaf, data: data.to_vec() });
                zeros
            }
            (Some(i), new_data) => {
                let block = &mut self.stash[i];
                block.leaf = leaf;
                let old = block.data.clone();
                if let Some(data) = new_data {
                    block.data.copy_from_slice(data);
                }
                old
            }
        }
    }

    pub(super) fn stash_addresses(&self) -> Vec<u64> {
        self.stash.iter().map(|block| block.address).collect()
    }
}
