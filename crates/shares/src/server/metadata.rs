//! Slots that say whose block they hold, so that the client need not know it (section 3.3; how is in `docs/adr/0017`).
//!
//! A slot begins with its metadata, which are shares as the rest is: so an eviction moves them with the block. Their last element is the *mark*: one if the block
//! was taken to the root, and zero otherwise. Who takes it has sent a share of one for its slot, and of zero for all others of the path: the query. Each server adds it to its
//! shares of the marks, and nobody sees which has changed.

use std::sync::Arc;

use oblivio_core::Leaf;

use super::{Refused, Server};
use crate::field::Field;
use crate::sharing::Parties;
use crate::tree::Tree;

/// A query, and the path that it is for.
pub(super) struct Asked<E> {
    pub(super) leaf: Leaf,
    /// An element for each slot.
    pub(super) query: Vec<E>,
}

impl<F: Field> Server<F> {
    /// The same as [`Self::new`], with slots of so many elements, of which the first say whose they are.
    ///
    /// # Errors
    /// When there is no server of this number, or when slots are no longer than what they say.
    pub fn with_metadata(
        number: u8,
        parties: Parties,
        tree: Tree,
        slot_elements: usize,
        metadata_elements: usize,
    ) -> Result<Self, Refused> {
        if metadata_elements >= slot_elements {
            return Err(Refused("a slot holds a block, and what it says of it"));
        }
        Ok(Self { metadata_elements, ..Self::new(number, parties, tree, slot_elements)? })
    }

    /// What the slots of a path say, the root's first: shares of degree *t*.
    ///
    /// # Errors
    /// For a path that there is not, and in the middle of an eviction.
    pub fn metadata(&self, leaf: Leaf) -> Result<Vec<F::Element>, Refused> {
        if leaf.0 >= self.tree.leaves() {
            return Err(Refused("the tree has no such path"));
        }
        self.check_settled()?;
        let slots = self.tree.path(leaf).flat_map(|bucket| self.slots(bucket));
        Ok(slots.flat_map(|slot| &slot[..self.metadata_elements]).copied().collect())
    }

    /// The slot that was selected is taken. Buckets that hold nothing are left out: no slot of them can have been selected, and which they are is no secret.
    pub(super) fn mark_what_was_taken(&mut self) -> Result<(), Refused> {
        if self.metadata_elements == 0 {
            return Ok(());
        }
        let Some(Asked { leaf, query }) = self.asked.take() else {
            return Err(Refused("a block is selected before one is written"));
        };
        let (slots, slot_elements) = (self.tree.slots(), self.block_elements);
        for (bucket, taken) in self.tree.path(leaf).zip(query.chunks_exact(slots)) {
            let Some(held) = self.buckets.get_mut(&bucket) else { continue };
            let held = Arc::make_mut(held);
            for (slot, taken) in held.chunks_exact_mut(slot_elements).zip(taken) {
                let mark = &mut slot[self.metadata_elements - 1];
                *mark = F::add(*mark, *taken);
            }
        }
        Ok(())
    }
}
