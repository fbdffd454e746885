//! The position map: of each block, to which leaf it is mapped, and in which slot of the path to it it lies. So the client can ask for
//! one slot, and can plan an eviction without asking anybody.
//!
//! It takes four bytes a block as long as there are no more than 2^32 − 1 slots of paths, which is 2^25 blocks of the paper's tree
//! (134 MB, where the paper states 119), and eight in larger trees.

use oblivio_core::Leaf;
use zeroize::Zeroizing;

use crate::tree::Tree;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// It stays on the path to this leaf until it is accessed.
    pub(super) leaf: Leaf,
    /// Of its bucket.
    pub(super) level: u8,
    /// In its bucket.
    pub(super) slot: usize,
}

/// Where all are that have ever been written.
pub(super) struct Positions {
    tree: Tree,
    entries: Entries,
}

enum Entries {
    Narrow(Zeroizing<Vec<u32>>),
    Wide(Zeroizing<Vec<u64>>),
}

impl Positions {
    /// Of so many blocks, none of which is anywhere.
    pub(super) fn new(tree: Tree, blocks: usize) -> Self {
        let slots_of_paths = u128::from(tree.leaves()) * tree.path_slots() as u128;
        let entries = if slots_of_paths < u128::from(u32::MAX) {
            Entries::Narrow(Zeroizing::new(vec![0; blocks]))
        } else {
            Entries::Wide(Zeroizing::new(vec![0; blocks]))
        };
        Self { tree, entries }
    }

    pub(super) fn blocks(&self) -> usize {
        match &self.entries {
            Entries::Narrow(entries) => entries.len(),
            Entries::Wide(entries) => entries.len(),
        }
    }

    /// None if it has never been written.
    pub(super) fn get(&self, address: usize) -> Option<Position> {
        let entry = match &self.entries {
            Entries::Narrow(entries) => entries[address].into(),
            Entries::Wide(entries) => entries[address],
        };
        // 0 says that there is none.
        let (path_slots, slots) = (self.tree.path_slots() as u64, self.tree.slots() as u64);
        let numbered = entry.checked_sub(1)?;
        let index = numbered % path_slots;
        Some(Position {
            leaf: Leaf(numbered / path_slots),
            level: (index / slots) as u8,
            slot: (index % slots) as usize,
        })
    }

    pub(super) fn set(&mut self, address: usize, position: Position) {
        let Position { leaf, level, slot } = position;
        let index = usize::from(level) * self.tree.slots() + slot;
        let entry = leaf.0 * self.tree.path_slots() as u64 + index as u64 + 1;
        match &mut self.entries {
            // There are fewer, or they would be wide.
            Entries::Narrow(entries) => entries[address] = entry as u32,
            Entries::Wide(entries) => entries[address] = entry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Preset;

    #[test]
    fn positions_come_back_in_small_trees_and_in_large_ones() {
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
        }
    }
}
