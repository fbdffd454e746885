//! Slots with metadata (section 3.3; ADR 17 in `docs/adr/0017`). The metadata of a slot names its
//! block, so the client need not know which block a slot holds.
//!
//! A slot begins with its metadata, which is shared like the rest, so an eviction moves it with the
//! block. The last element of the metadata is the *mark*: one if the block was taken to the root,
//! and zero otherwise. To take a block, the client sends the query as usual: shares of one for its
//! slot, and of zero for the other slots of the path. Each server adds the query to its shares of
//! the marks, and cannot see which mark has changed.

use std::sync::Arc;

use oblivio_core::Leaf;

use super::{Refused, Server};
use crate::field::Field;
use crate::sharing::Parties;
use crate::tree::Tree;

/// A query and its path.
pub(super) struct PathQuery<E> {
    pub(super) leaf: Leaf,
    /// The share of the query: one element for each slot of the path.
    pub(super) query: Vec<E>,
}

impl<F: Field> Server<F> {
    /// Creates a server as [`Self::new`] does, with slots of `slot_elements` elements. The first
    /// `metadata_elements` elements of a slot are metadata, which names the block.
    ///
    /// # Errors
    /// If no server has this number, or slots are not longer than their metadata.
    pub fn with_metadata(
        number: u8,
        parties: Parties,
        tree: Tree,
        slot_elements: usize,
        metadata_elements: usize,
    ) -> Result<Self, Refused> {
        if metadata_elements >= slot_elements {
            return Err(Refused("a slot must be longer than its metadata"));
        }
        Ok(Self { metadata_elements, ..Self::new(number, parties, tree, slot_elements)? })
    }

    /// Returns the metadata of the slots of a path, beginning with the root's: shares of degree
    /// *t*.
    ///
    /// # Errors
    /// If the tree has no such path, or an eviction is in progress or not committed.
    pub fn metadata(&self, leaf: Leaf) -> Result<Vec<F::Element>, Refused> {
        if leaf.0 >= self.tree.leaves() {
            return Err(Refused("the tree has no such path"));
        }
        self.check_settled()?;
        let slots = self.tree.path(leaf).flat_map(|bucket| self.slots(bucket));
        Ok(slots.flat_map(|slot| &slot[..self.metadata_elements]).copied().collect())
    }

    /// Marks the selected slot as taken; does nothing if slots have no metadata. Fails if no block
    /// was selected. Empty buckets are skipped: none of their slots can be selected, and which
    /// buckets are empty is public.
    pub(super) fn mark_taken(&mut self) -> Result<(), Refused> {
        if self.metadata_elements == 0 {
            return Ok(());
        }
        let Some(PathQuery { leaf, query }) = self.last_query.take() else {
            return Err(Refused("a block must be selected before one is written"));
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
