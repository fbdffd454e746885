//! A block of the position map. A map block has one entry for each of several consecutive blocks:
//! the leaf, and the number of the last write if blocks are sealed. The map does not say where on
//! its path a block is; the metadata of slots shows that.
//!
//! An entry holds the leaf plus one. Zero means that the block has no leaf, so the map of a new
//! tree is all zeros.

use oblivio_core::Leaf;
use zeroize::Zeroizing;

use crate::client::ClientError;
use crate::field::Field;
use crate::tree::Tree;

/// The format of the map blocks that hold the leaves of one tree's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapFormat {
    leaves: u64,
    /// Bytes of a write number.
    write_bytes: usize,
    entries: usize,
}

/// A map entry of a block. Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) leaf: Leaf,
    /// The number of the last write of the block; 0 if map entries have no write numbers.
    pub(crate) write: u64,
}

impl MapFormat {
    /// The format of map blocks for the blocks of tree `of`. A map block has at most
    /// `block_bytes_max` bytes.
    pub(super) fn new(of: Tree, write_bytes: usize, block_bytes_max: usize) -> Self {
        let leaves = of.leaves();
        let entries = block_bytes_max / (number_bytes(leaves) + write_bytes);
        Self { leaves, write_bytes, entries }
    }

    /// The number of entries of a map block.
    pub(crate) fn entries(self) -> usize {
        self.entries
    }

    fn entry_bytes(self) -> usize {
        number_bytes(self.leaves) + self.write_bytes
    }

    pub(crate) fn bytes(self) -> usize {
        self.entries * self.entry_bytes()
    }

    /// Replaces entry `entry` of a map block. Returns the old entry; `None` if the entry was empty.
    ///
    /// # Errors
    /// [`ClientError::Metadata`] if the old entry has an invalid leaf. The entry is replaced even
    /// then.
    pub(crate) fn replace<F: Field>(
        self,
        block: &mut [F::Element],
        entry: usize,
        mapped: Mapped,
    ) -> Result<Option<Mapped>, ClientError> {
        let mut bytes = Zeroizing::new(vec![0; self.bytes()]);
        F::unpack(block, &mut bytes);
        let before = self.get(&bytes, entry);
        let at = &mut bytes[entry * self.entry_bytes()..][..self.entry_bytes()];
        let (leaf, write) = at.split_at_mut(number_bytes(self.leaves));
        put_number(mapped.leaf.0 + 1, leaf);
        put_number(mapped.write, write);
        F::pack(&bytes, block);
        before
    }

    /// Reads entry `entry` of a map block; `None` if the entry is empty.
    ///
    /// # Errors
    /// [`ClientError::Metadata`] if the entry has an invalid leaf.
    pub(crate) fn get(self, bytes: &[u8], entry: usize) -> Result<Option<Mapped>, ClientError> {
        let at = &bytes[entry * self.entry_bytes()..][..self.entry_bytes()];
        let (leaf, write) = at.split_at(number_bytes(self.leaves));
        let (numbered, write) = (number_of(leaf), number_of(write));
        if numbered > self.leaves {
            return Err(ClientError::Metadata);
        }
        Ok(numbered.checked_sub(1).map(|leaf| Mapped { leaf: Leaf(leaf), write }))
    }
}

/// The number of bytes that hold every number up to `most`, at least one.
pub(super) fn number_bytes(most: u64) -> usize {
    let bits = u64::BITS - most.leading_zeros();
    bits.div_ceil(u8::BITS).max(1) as usize
}

/// Fills `out` with a number in little-endian order.
pub(crate) fn put_number(number: u64, out: &mut [u8]) {
    out.copy_from_slice(&number.to_le_bytes()[..out.len()]);
}

pub(crate) fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{Gf256, Mersenne61};
    use crate::tree::Preset;

    fn entries_round_trip<F: Field>() {
        for height in [1, 7, 8, 16, 30] {
            let tree = Tree::new(height, Preset::LARGE).unwrap();
            for write_bytes in [0, 6] {
                entries_round_trip_in::<F>(tree, MapFormat::new(tree, write_bytes, 160));
            }
        }
    }

    fn entries_round_trip_in<F: Field>(tree: Tree, format: MapFormat) {
        assert!(format.entries() >= 16 && format.bytes() <= 160);
        let write = |n: usize| if format.write_bytes > 0 { n as u64 * 0x1234_5678 } else { 0 };
        let mut block = vec![F::ZERO; F::packed_elements(format.bytes())];
        let mut expected = vec![None; format.entries()];
        for n in 0..3 * format.entries() {
            let entry = n * 5 % format.entries();
            let leaf = Leaf((n as u64 * 0x9e37_79b9) % tree.leaves());
            let mapped = Mapped { leaf, write: write(n) };
            let before = format.replace::<F>(&mut block, entry, mapped);
            assert_eq!(before, Ok(expected[entry]), "{format:?}, entry {entry}");
            expected[entry] = Some(mapped);
        }
        let last = Mapped { leaf: Leaf(tree.leaves() - 1), write: write(1) };
        format.replace::<F>(&mut block, 0, last).unwrap();
        let first = Mapped { leaf: Leaf(0), write: 0 };
        assert_eq!(format.replace::<F>(&mut block, 0, first), Ok(Some(last)));
    }

    #[test]
    fn entries_round_trip_over_both_fields() {
        entries_round_trip::<Gf256>();
        entries_round_trip::<Mersenne61>();
    }

    #[test]
    fn an_invalid_leaf_is_refused() {
        let format = MapFormat::new(Tree::new(2, Preset::LARGE).unwrap(), 0, 3);
        let mut block = [4, 5, 255];
        let [first, last] = [0, 3].map(|leaf| Mapped { leaf: Leaf(leaf), write: 0 });
        assert_eq!(format.replace::<Gf256>(&mut block, 0, first), Ok(Some(last)));
        for entry in [1, 2] {
            let found = format.replace::<Gf256>(&mut block, entry, first);
            assert_eq!(found, Err(ClientError::Metadata));
        }
    }

    #[test]
    fn numbers_are_as_long_as_the_largest() {
        for (most, bytes) in [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (u64::MAX, 8)] {
            assert_eq!(number_bytes(most), bytes);
            let mut out = vec![7; bytes];
            put_number(most, &mut out);
            assert_eq!(number_of(&out), most);
        }
    }
}
