//! The metadata of a slot: which block it holds, the leaf that the block is mapped to, and whether
//! the block was taken since it was written. This is the bucket metadata of section 3.3, for one
//! slot.
//!
//! ```text
//! slot = label + 1 ‖ leaf, packed into elements ‖ mark ‖ block
//! ```
//! The label identifies the block. An empty slot is all zeros, and so is a new tree. The index of
//! the slot on the path (the paper's `pIdx`) is not stored, because the position of the metadata
//! shows it.

use std::marker::PhantomData;

use oblivio_core::Leaf;
use zeroize::Zeroizing;

use super::map_block::{number_bytes, number_of, put_number};

use crate::client::{ClientError, Occupant};
use crate::field::Field;
use crate::tree::Tree;

/// The format of the metadata of slots in one tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataFormat<F> {
    labels: u64,
    leaves: u64,
    field: PhantomData<F>,
}

/// The metadata of a slot that holds a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) occupant: Occupant,
    /// Whether an access has taken the block from this slot and written it to the root.
    pub(crate) is_taken: bool,
}

impl<F: Field> MetadataFormat<F> {
    pub(crate) fn new(tree: Tree, labels: u64) -> Self {
        Self { labels, leaves: tree.leaves(), field: PhantomData }
    }

    fn label_bytes(self) -> usize {
        number_bytes(self.labels)
    }

    fn bytes(self) -> usize {
        self.label_bytes() + number_bytes(self.leaves - 1)
    }

    /// The number of field elements of the metadata, including the mark.
    pub(crate) fn elements(self) -> usize {
        F::packed_elements(self.bytes()) + 1
    }

    /// Writes the metadata of a block that is written to the root, with an unset mark.
    pub(super) fn put(self, occupant: Occupant, out: &mut [F::Element]) {
        let mut bytes = Zeroizing::new(vec![0; self.bytes()]);
        let (label, leaf) = bytes.split_at_mut(self.label_bytes());
        put_number(occupant.label as u64 + 1, label);
        put_number(occupant.leaf.0, leaf);
        out.fill(F::ZERO);
        F::pack(&bytes, &mut out[..self.elements() - 1]);
    }

    /// Reads the metadata of a slot; `None` if the slot is empty.
    ///
    /// # Errors
    /// [`ClientError::Metadata`] if the metadata is invalid.
    pub(crate) fn get(self, elements: &[F::Element]) -> Result<Option<Metadata>, ClientError> {
        if elements.iter().all(|element| *element == F::ZERO) {
            return Ok(None);
        }
        let (packed, mark) = elements.split_at(self.elements() - 1);
        let mut bytes = Zeroizing::new(vec![0; self.bytes()]);
        F::unpack(packed, &mut bytes);
        let (label, leaf) = bytes.split_at(self.label_bytes());
        let (numbered, leaf) = (number_of(label), number_of(leaf));
        let is_mark = mark.iter().all(|mark| [F::ZERO, F::ONE].contains(mark));
        if !is_mark || !(1..=self.labels).contains(&numbered) || leaf >= self.leaves {
            return Err(ClientError::Metadata);
        }
        let occupant = Occupant { label: (numbered - 1) as usize, leaf: Leaf(leaf) };
        Ok(Some(Metadata { occupant, is_taken: mark.contains(&F::ONE) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{Gf256, Mersenne61};
    use crate::tree::Preset;

    fn round_trips<F: Field>() {
        for (height, blocks) in [(1, 1), (1, 255), (3, 256), (8, 65_536), (17, 1 << 25)] {
            let tree = Tree::new(height, Preset::LARGE).unwrap();
            let format = MetadataFormat::<F>::new(tree, blocks);
            let mut elements = vec![F::ONE; format.elements()];
            for (label, leaf) in [(0, 0), (blocks - 1, tree.leaves() - 1), (blocks / 2, 1)] {
                let occupant = Occupant { label: label as usize, leaf: Leaf(leaf) };
                format.put(occupant, &mut elements);
                assert_eq!(format.get(&elements), Ok(Some(Metadata { occupant, is_taken: false })));
                elements[format.elements() - 1] = F::ONE;
                assert_eq!(format.get(&elements), Ok(Some(Metadata { occupant, is_taken: true })));
            }
            elements.fill(F::ZERO);
            assert_eq!(format.get(&elements), Ok(None));
        }
    }

    #[test]
    fn metadata_round_trips_over_both_fields() {
        round_trips::<Gf256>();
        round_trips::<Mersenne61>();
    }

    #[test]
    fn invalid_metadata_is_refused() {
        let tree = Tree::new(2, Preset::LARGE).unwrap();
        let format = MetadataFormat::<Gf256>::new(tree, 9);
        assert_eq!(format.get(&[9, 3, 1]).map(|it| it.is_some()), Ok(true));
        for elements in [[10, 3, 0], [9, 4, 0], [9, 3, 2], [0, 3, 0], [0, 0, 1]] {
            assert_eq!(format.get(&elements), Err(ClientError::Metadata), "{elements:?}");
        }
    }
}
