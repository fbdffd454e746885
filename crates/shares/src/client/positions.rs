//! The position map: for each block, its leaf and its slot on the path to the leaf. With this map
//! the client selects one slot, and plans evictions without asking the servers.
//!
//! An entry takes four bytes if all paths together have fewer than 2^32 − 1 slots, as in the
//! paper's tree of 2^25 blocks (134 MB; the paper states 119). Entries of larger trees take eight
//! bytes.

use oblivio_core::Leaf;
use zeroize::Zeroizing;

use crate::tree::Tree;

/// The position of a block in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The leaf whose path holds the block until the next access.
    pub(crate) leaf: Leaf,
    /// The level of the block's bucket.
    pub(crate) level: u8,
    /// The block's slot in the bucket.
    pub(crate) slot: usize,
}

/// The positions of all blocks that were ever written.
pub(crate) struct Positions {
    tree: Tree,
    entries: Entries,
}

enum Entries {
    Narrow(Zeroizing<Vec<u32>>),
    Wide(Zeroizing<Vec<u64>>),
}

impl Positions {
    /// Creates a map for `blocks` blocks, none of which has a position.
    pub(super) fn new(tree: Tree, blocks: usize) -> Self {
        let entries = if Self::are_narrow(tree) {
            Entries::Narrow(Zeroizing::new(vec![0; blocks]))
        } else {
            Entries::Wide(Zeroizing::new(vec![0; blocks]))
        };
        Self { tree, entries }
    }

    pub(crate) fn blocks(&self) -> usize {
        match &self.entries {
            Entries::Narrow(entries) => entries.len(),
            Entries::Wide(entries) => entries.len(),
        }
    }

    /// Bytes that the map needs for one block.
    pub(crate) fn entry_bytes(tree: Tree) -> usize {
        if Self::are_narrow(tree) { size_of::<u32>() } else { size_of::<u64>() }
    }

    fn are_narrow(tree: Tree) -> bool {
        slots_of_paths(tree) < u128::from(u32::MAX)
    }

    /// Returns the encoded position of a block; 0 if the block has none.
    pub(crate) fn entry(&self, address: usize) -> u64 {
        match &self.entries {
            Entries::Narrow(entries) => entries[address].into(),
            Entries::Wide(entries) => entries[address],
        }
    }

    /// The position of a block; `None` if it has none.
    pub(crate) fn get(&self, address: usize) -> Option<Position> {
        let entry = self.entry(address);
        let (path_slots, slots) = (self.tree.path_slots() as u64, self.tree.slots() as u64);
        let numbered = entry.checked_sub(1)?;
        let index = numbered % path_slots;
        Some(Position {
            leaf: Leaf(numbered / path_slots),
            level: (index / slots) as u8,
            slot: (index % slots) as usize,
        })
    }

    pub(crate) fn set(&mut self, address: usize, position: Position) {
        let Position { leaf, level, slot } = position;
        let index = usize::from(level) * self.tree.slots() + slot;
        let entry = leaf.0 * self.tree.path_slots() as u64 + index as u64 + 1;
        self.put(address, entry);
    }

    /// Restores an entry that [`Self::entry`] returned. Returns whether the entry is valid; an
    /// invalid entry changes nothing.
    #[must_use]
    pub(crate) fn set_entry(&mut self, address: usize, entry: u64) -> bool {
        let is_valid = u128::from(entry) <= slots_of_paths(self.tree);
        if is_valid {
            self.put(address, entry);
        }
        is_valid
    }

    /// Removes the position of a block.
    pub(crate) fn remove(&mut self, address: usize) {
        self.put(address, 0);
    }

    fn put(&mut self, address: usize, entry: u64) {
        match &mut self.entries {
            // Fits: entries of larger trees are wide.
            Entries::Narrow(entries) => entries[address] = entry as u32,
            Entries::Wide(entries) => entries[address] = entry,
        }
    }
}

fn slots_of_paths(tree: Tree) -> u128 {
    u128::from(tree.leaves()) * tree.path_slots() as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Preset;

    #[test]
    fn positions_round_trip_in_small_and_large_trees() {
        for (height, is_wide) in [(3, false), (18, false), (20, true), (30, true)] {
            let tree = Tree::new(height, Preset::PAPER).unwrap();
            let mut positions = Positions::new(tree, 4);
            assert_eq!(matches!(positions.entries, Entries::Wide(_)), is_wide);
            let last = Position { leaf: Leaf(tree.leaves() - 1), level: height, slot: 332 };
            let first = Position { leaf: Leaf(0), level: 0, slot: 0 };
            let between = Position { leaf: Leaf(5), level: 2, slot: 17 };
            for (address, position) in [(0, first), (1, last), (3, between)] {
                positions.set(address, position);
            }
            let found = (0..4).map(|address| positions.get(address)).collect::<Vec<_>>();
            assert_eq!(found, [Some(first), Some(last), None, Some(between)]);
            // Entries can be restored, and invalid ones are refused.
            let entries = [0, 1, 3].map(|address| positions.entry(address));
            positions.remove(1);
            assert_eq!(positions.get(1), None);
            assert!(
                positions.set_entry(2, entries[1]) && !positions.set_entry(2, entries[1] + 334)
            );
            assert_eq!(positions.get(2), Some(last));
        }
    }
}
