//! A tree of plaintext buckets, a stash and a position map: what both references are made of.

use std::collections::HashMap;

use rand_core::CryptoRng;

use super::push_to_leaf;
use crate::geometry::{BucketId, Geometry, Leaf};

#[derive(Clone)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) leaf: Leaf,
    pub(super) data: Vec<u8>,
}

pub(super) struct Tree<R> {
    pub(super) geometry: Geometry,
    block_bytes: usize,
    position_map: HashMap<u64, Leaf>,
    buckets: HashMap<BucketId, Vec<Block>>,
    pub(super) stash: Vec<Block>,
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
            coins,
        }
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

    /// All blocks of the path into the stash, the root's first.
    pub(super) fn read_path(&mut self, leaf: Leaf) {
        for bucket in self.geometry.path(leaf) {
            self.stash.append(self.buckets.entry(bucket).or_default());
        }
    }

    /// One block of the path into the stash, if it is there.
    pub(super) fn take_from_path(&mut self, leaf: Leaf, address: u64) {
        for bucket in self.geometry.path(leaf) {
            let blocks = self.buckets.entry(bucket).or_default();
            if let Some(slot) = blocks.iter().position(|block| block.address == address) {
                self.stash.push(blocks.remove(slot));
            }
        }
    }

    /// As many blocks as possible from the stash into the (empty) path.
    pub(super) fn write_path(&mut self, leaf: Leaf) {
        let names = self.stash.iter().map(|block| (block.address, block.leaf)).collect();
        let (path, _) = push_to_leaf(names, leaf, &self.geometry);
        for (bucket, names) in self.geometry.path(leaf).zip(path) {
            for (address, _) in names {
                let i = self.stash.iter().position(|block| block.address == address);
                let block = self.stash.remove(i.expect("only blocks of the stash are pushed"));
                self.buckets.entry(bucket).or_default().push(block);
            }
        }
    }

    /// Gives the block its new leaf, applies the operation, and returns what the block held before.
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
