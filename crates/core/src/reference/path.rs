//! Basic Path ORAM, Tiny ORAM section II-A, steps 1 to 5.

use alloc::vec::Vec;

use rand_core::CryptoRng;

use super::tree::Tree;
use crate::geometry::{Geometry, Leaf};

/// The reference for [`crate::scheme::PathScheme`] behind a flat position map.
pub struct ReferencePath<R> {
    tree: Tree<R>,
    /// The leaf of each access so far: what storage sees.
    pub leaves: Vec<Leaf>,
}

impl<R: CryptoRng> ReferencePath<R> {
    /// An empty ORAM.
    pub fn new(geometry: Geometry, block_bytes: usize, coins: R) -> Self {
        Self { tree: Tree::new(geometry, block_bytes, coins), leaves: Vec::new() }
    }

    /// The same ORAM, but the levels `0..levels` are a set-associative tree top (IR-ORAM, section
    /// IV-C): they hold at most `ways` blocks of each set of addresses. The number of sets is the
    /// smallest that covers the slots of these levels.
    #[must_use]
    pub fn with_sets(mut self, levels: u8, ways: u16) -> Self {
        self.tree.limit_sets(levels, ways);
        self
    }

    /// Replaces the block with `new_data`, if given, and returns its old contents.
    pub fn access(&mut self, address: u64, new_data: Option<&[u8]>) -> Vec<u8> {
        // Step 1: look up and replace the leaf.
        let (leaf, new_leaf) = self.tree.remap(address);
        self.leaves.push(leaf);
        // Step 2: read the path into the stash.
        self.tree.read_path(leaf);
        // Steps 3 and 4: note the new leaf, then read or replace the contents.
        let old = self.tree.serve(address, new_leaf, new_data);
        // Step 5: put as many blocks as possible back on the path.
        self.tree.write_path(leaf);
        old
    }

    /// The addresses of the blocks in the stash, in stash order.
    pub fn stash_addresses(&self) -> Vec<u64> {
        self.tree.stash_addresses()
    }
}
