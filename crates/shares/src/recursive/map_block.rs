//! A block of the position map: of each of some blocks in a row, to which leaf it is mapped. Where on its path a block is, its slot says.
//!
//! An entry is the leaf and one, so zeros map no block: a map of which nothing was used is zeros.

use oblivio_core::Leaf;
use zeroize::Zeroizing;

use crate::client::ClientError;
use crate::field::Field;
use crate::tree::Tree;

/// How map blocks are shaped that tell of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MapFormat {
    leaves: u64,
    entries: usize,
}

impl MapFormat {
    /// Of blocks of at most so many bytes.
    pub(super) fn new(of: Tree, block_bytes_max: usize) -> Self {
        let leaves = of.leaves();
        Self { leaves, entries: block_bytes_max / number_bytes(leaves) }
    }

    /// How many blocks one tells of.
    pub(super) fn entries(self) -> usize {
        self.entries
    }

    pub(super) fn bytes(self) -> usize {
        self.entries * number_bytes(self.leaves)
    }

    /// Maps the block of this entry to another leaf. Answers to which it was mapped; none if to none.
    ///
    /// # Errors
    /// [`ClientError::Metadata`] for what is no leaf.
    pub(super) fn replace<F: Field>(
        self,
        block: &mut [F::Element],
        entry: usize,
        leaf: Leaf,
    ) -> Result<Option<Leaf>, ClientError> {
        let mut bytes = Zeroizing::new(vec![0; self.bytes()]);
        F::unpack(block, &mut bytes);
        let entry_bytes = number_bytes(self.leaves);
        let at = &mut bytes[entry * entry_bytes..][..entry_bytes];
        let before = number_of(at);
        put_number(leaf.0 + 1, at);
        F::pack(&bytes, block);
        if before > self.leaves {
            return Err(ClientError::Metadata);
        }
        Ok(before.checked_sub(1).map(Leaf))
    }
}

/// How many bytes hold each number up to this one: one at least.
pub(super) fn number_bytes(most: u64) -> usize {
    let bits = u64::BITS - most.leading_zeros();
    bits.div_ceil(u8::BITS).max(1) as usize
}

/// The lowest byte comes first.
pub(super) fn put_number(number: u64, out: &mut [u8]) {
    out.copy_from_slice(&number.to_le_bytes()[..out.len()]);
}

pub(super) fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{Gf256, Mersenne61};
    use crate::tree::Preset;

    fn entries_stand_for_themselves<F: Field>() {
        for height in [1, 7, 8, 16, 30] {
            let tree = Tree::new(height, Preset::LARGE).unwrap();
            let format = MapFormat::new(tree, 64);
            assert!(format.entries() >= 16 && format.bytes() <= 64);
            let mut block = vec![F::ZERO; F::packed_elements(format.bytes())];
            let mut expected = vec![None; format.entries()];
            for n in 0..3 * format.entries() {
                let entry = n * 5 % format.entries();
                let leaf = Leaf((n as u64 * 0x9e37_79b9) % tree.leaves());
                let before = format.replace::<F>(&mut block, entry, leaf);
                assert_eq!(before, Ok(expected[entry]), "height {height}, entry {entry}");
                expected[entry] = Some(leaf);
            }
            let last = Leaf(tree.leaves() - 1);
            format.replace::<F>(&mut block, 0, last).unwrap();
            assert_eq!(format.replace::<F>(&mut block, 0, Leaf(0)), Ok(Some(last)));
        }
    }

    #[test]
    fn entries_stand_for_themselves_over_both_fields() {
        entries_stand_for_themselves::<Gf256>();
        entries_stand_for_themselves::<Mersenne61>();
    }

    #[test]
    fn what_is_no_leaf_is_refused() {
        let format = MapFormat::new(Tree::new(2, Preset::LARGE).unwrap(), 3);
        let mut block = [4, 5, 255];
        assert_eq!(format.replace::<Gf256>(&mut block, 0, Leaf(0)), Ok(Some(Leaf(3))));
        for entry in [1, 2] {
            let found = format.replace::<Gf256>(&mut block, entry, Leaf(0));
            assert_eq!(found, Err(ClientError::Metadata));
        }
    }

    #[test]
    fn numbers_are_as_long_as_the_greatest() {
        for (most, bytes) in [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 3), (u64::MAX, 8)] {
            assert_eq!(number_bytes(most), bytes);
            let mut out = vec![7; bytes];
            put_number(most, &mut out);
            assert_eq!(number_of(&out), most);
        }
    }
}
