//! Position-map blocks on the client, in LRU order.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use hashbrown::HashMap;
use zeroize::Zeroizing;

use crate::geometry::Leaf;

/// A position-map block on the client. Secret; wiped when dropped.
pub(crate) struct HeldBlock {
    pub(crate) address: u64,
    /// Its leaf, on a path that storage has not seen for it.
    pub(crate) leaf: Leaf,
    pub(crate) bytes: Zeroizing<Vec<u8>>,
}

/// A fully associative PLB: the requests of one batch need many blocks at once, and none of them
/// may evict another.
pub(super) struct HeldBlocks {
    /// The blocks, each with the time of its last use.
    blocks: HashMap<u64, (u64, HeldBlock)>,
    /// The addresses, by the time of last use.
    order: BTreeMap<u64, u64>,
    blocks_max: usize,
    clock: u64,
}

impl HeldBlocks {
    pub(super) fn new(blocks_max: usize) -> Self {
        Self { blocks: HashMap::new(), order: BTreeMap::new(), blocks_max, clock: 0 }
    }

    pub(super) fn get(&self, address: u64) -> Option<&HeldBlock> {
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
    pub(super) fn insert(&mut self, block: HeldBlock) -> Option<HeldBlock> {
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
    pub(super) fn iter(&self) -> impl Iterator<Item = &HeldBlock> {
        self.order.values().filter_map(|address| self.get(*address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address: u64) -> HeldBlock {
        HeldBlock { address, leaf: Leaf(address), bytes: Zeroizing::new(vec![address as u8; 4]) }
    }

    #[test]
    fn the_least_recently_used_block_is_evicted() {
        let mut held = HeldBlocks::new(3);
        assert!([1, 2, 3].into_iter().all(|address| held.insert(block(address)).is_none()));
        held.touch(1);
        held.touch(9);
        let _a_look_is_no_use = held.get(2);
        assert_eq!(held.insert(block(4)).unwrap().address, 2);
        assert_eq!(held.iter().map(|block| block.address).collect::<Vec<_>>(), [3, 1, 4]);
        held.bytes_mut(3).unwrap().fill(7);
        let gone = held.insert(block(5)).unwrap();
        assert_eq!((gone.address, gone.bytes.as_slice(), held.blocks.len()), (3, &[7; 4][..], 3));
    }
}
