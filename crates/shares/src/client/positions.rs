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
pub(crate) struct Position {
    /// It stays on the path to this leaf until it is accessed.
    pub(crate) leaf: Leaf,
    /// Of its bucket.
    pub(crate) level: u8,
    /// In its bucket.
    pub(crate) slot: usize,
}

/// Where all are that have ever been written.
pub(crate) struct Positions {
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

    /// How many bytes an entry takes.
    pub(crate) fn entry_bytes(tree: Tree) -> usize {
        if Self::are_narrow(tree) { size_of::<u32>() } else { size_of::<u64>() }
    }

    fn are_narrow(tree: Tree) -> bool {
        slots_of_paths(tree) < u128::from(u32::MAX)
    }

    /// A position as a number: 0 is none.
    pub(crate) fn entry(&self, address: usize) -> u64 {
        match &self.entries {
            Entries::Narrow(entries) => entries[address].into(),
            Entries::Wide(entries) => entries[address],
        }
    }

    /// None if it is nowhere.
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

    /// Puts back what [`Self::entry`] has told. Answers whether there is such a position.
    #[must_use]
    pub(crate) fn set_entry(&mut self, address: usize, entry: u64) -> bool {
        let is_some = u128::from(entry) <= slots_of_paths(self.tree);
        if is_some {
            self.put(address, entry);
        }
        is_some
    }

    /// The block is nowhere from now on.
    pub(crate) fn remove(&mut self, address: usize) {
        self.put(address, 0);
    }

    fn put(&mut self, address: usize, entry: u64) {
        match &mut self.entries {
            // There are fewer, or they would be wide.
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
            // They come back as numbers, and others are none.
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
