//! RAW ORAM, Tiny ORAM section IV-A.

use alloc::vec::Vec;

use rand_core::CryptoRng;

use super::tree::Tree;
use crate::geometry::{Geometry, Leaf};

/// The reference for [`crate::scheme::RawScheme`] behind a flat position map.
pub struct ReferenceRaw<R> {
    tree: Tree<R>,
    evict_period: u64,
    accesses: u64,
    /// The leaf of each path read so far, including evictions: what storage sees.
    pub leaves: Vec<Leaf>,
}

impl<R: CryptoRng> ReferenceRaw<R> {
    /// An empty ORAM that evicts after every `evict_period` accesses (A in the paper).
    pub fn new(geometry: Geometry, block_bytes: usize, evict_period: u64, coins: R) -> Self {
        let tree = Tree::new(geometry, block_bytes, coins);
        Self { tree, evict_period, accesses: 0, leaves: Vec::new() }
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
        // Section II-A, step 1: look up and replace the leaf.
        let (leaf, new_leaf) = self.tree.remap(address);
        self.leaves.push(leaf);
        // Section IV-A: an AO access moves only the requested block to the stash.
        self.tree.take_from_path(leaf, address);
        // Section II-A, steps 3 and 4: note the new leaf, then read or replace the contents.
        let old = self.tree.serve(address, new_leaf, new_data);
        // Section IV-A: one EO access after every A AO accesses.
        self.accesses += 1;
        if self.accesses.is_multiple_of(self.evict_period) {
            self.evict();
        }
        old
    }

    fn evict(&mut self) {
        let evictions = self.accesses / self.evict_period - 1;
        // Section IV-A: reverse lexicographic order is G mod 2^L (Fig. 5).
        let leaf = Leaf(evictions % self.tree.geometry.leaves());
        self.leaves.push(leaf);
        // Section IV-A: a dummy access of Path ORAM reads and evicts the path.
        self.tree.read_path(leaf);
        self.tree.write_path(leaf);
    }

    /// The addresses of the blocks in the stash, in stash order.
    pub fn stash_addresses(&self) -> Vec<u64> {
        self.tree.stash_addresses()
    }
}
