//! Position-map blocks on the client, in LRU order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use hashbrown::HashMap;
use zeroize::Zeroizing;

use crate::geometry::Leaf;

/// A position-map block on the client. Secret; its bytes are wiped when dropped.
pub(crate) struct PlbBlock {
    pub(crate) address: u64,
    /// The leaf to which the block is mapped. Storage has not yet seen an access to the block on
    /// this path.
    pub(crate) leaf: Leaf,
    pub(crate) bytes: Zeroizing<Vec<u8>>,
}

/// A fully associative PLB: the requests of one batch need many blocks at once, and none of them
/// may evict another.
pub(super) struct LruPlb {
    /// The blocks, each with the time of its last use.
    blocks: HashMap<u64, (u64, PlbBlock)>,
    /// The addresses of the blocks, ordered by the time of their last use.
    order: BTreeMap<u64, u64>,
    blocks_max: usize,
    clock: u64,
}

impl LruPlb {
    pub(super) fn new(blocks_max: usize) -> Self {
        Self { blocks: HashMap::new(), order: BTreeMap::new(), blocks_max, clock: 0 }
    }

    pub(super) fn get(&self, address: u64) -> Option<&PlbBlock> {
        self.blocks.get(&address).map(|(_, block)| block)
    }

    pub(super) fn bytes_mut(&mut self, address: u64) -> Option<&mut [u8]> {
        self.blocks.get_mut(&address).map(|(_, block)| block.bytes.as_mut_slice())
    }

    /// Marks a block as most recently used, if it is present.
    pub(super) fn touch(&mut self, address: u64) {
        if let Some((last_use, _)) = self.blocks.get_mut(&address) {
            self.order.remove(last_use);
            self.clock += 1;
            *last_use = self.clock;
            self.order.insert(self.clock, address);
        }
    }

    /// Adds a block that is not present. Returns the least recently used block if it must be
    /// evicted.
    pub(super) fn insert(&mut self, block: PlbBlock) -> Option<PlbBlock> {
        self.clock += 1;
        self.order.insert(self.clock, block.address);
        self.blocks.insert(block.address, (self.clock, block));
        if self.blocks.len() <= self.blocks_max {
            return None;
        }
        let (_, victim) = self.order.pop_first()?;
        self.blocks.remove(&victim).map(|(_, block)| block)
    }

    /// All blocks, least recently used first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PlbBlock> {
        self.order.values().filter_map(|address| self.get(*address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: u64) -> PlbBlock {
        PlbBlock { address, leaf: Leaf(address), bytes: Zeroizing::new(vec![address as u8; 4]) }
    }

    #[test]
    fn the_least_recently_used_block_is_evicted() {
        let mut plb = LruPlb::new(3);
        assert!([1, 2, 3].into_iter().all(|address| plb.insert(block(address)).is_none()));
        plb.touch(1);
        plb.touch(9);
        let _a_look_is_no_use = plb.get(2);
        assert_eq!(plb.insert(block(4)).unwrap().address, 2);
        assert_eq!(plb.iter().map(|block| block.address).collect::<Vec<_>>(), [3, 1, 4]);
        plb.bytes_mut(3).unwrap().fill(7);
        let evicted = plb.insert(block(5)).unwrap();
        assert_eq!(
            (evicted.address, evicted.bytes.as_slice(), plb.blocks.len()),
            (3, &[7; 4][..], 3)
        );
    }
}
