//! A tree whose slots have metadata. The caller knows the leaf of a block, and metadata shows in
//! which slot of the path the block is.

use oblivio_core::Leaf;
use zeroize::Zeroizing;

use super::levels::Level;
use super::metadata::{Metadata, MetadataFormat};
use crate::answers::{Answers, decode_from};
use crate::client::{
    Client, ClientError, EvictionContents, EvictionPlan, Occupant, Occupants, Position,
    plan_eviction,
};
use crate::field::Field;
use crate::sharing::Parties;

/// The client of a tree whose slots have metadata.
pub(crate) struct MappedTree<F> {
    parties: Parties,
    level: Level,
    format: MetadataFormat<F>,
    /// The client that makes queries and writes, and shares matrices. It knows no positions, so it
    /// takes no memory for them.
    pub(crate) client: Client<F>,
}

impl<F: Field> MappedTree<F> {
    pub(crate) fn new(parties: Parties, level: Level) -> Result<Self, ClientError> {
        let format = MetadataFormat::new(level.tree, level.labels);
        let client = Client::new(parties, level.tree, 0, level.slot_elements())?;
        Ok(Self { parties, level, format, client })
    }

    /// Finds the live blocks on a path, from the metadata that servers returned. The block in a
    /// slot is live if it was not taken since it was written there, and its bucket is on the path
    /// to its leaf. Stale copies exist because an eviction copies a whole bucket to its sibling.
    ///
    /// # Errors
    /// [`ClientError::Answers`] if the answers do not determine the metadata, and
    /// [`ClientError::Metadata`] if the metadata of a slot is invalid.
    pub(crate) fn occupants(
        &self,
        leaf: Leaf,
        answers: &Answers<F::Element>,
    ) -> Result<Vec<Occupants>, ClientError> {
        let (tree, elements) = (self.level.tree, self.format.elements());
        let all = tree.path_slots() * elements;
        let Answers { numbers, shares } = answers;
        let colluding = self.parties.colluding();
        let recovered = decode_from::<F>(self.parties, colluding + 1, numbers, shares, all)
            .map_err(ClientError::Answers)?;
        let recovered = Zeroizing::new(recovered.block);
        let buckets = tree.path(leaf).zip(recovered.chunks_exact(tree.slots() * elements));
        let occupants = buckets.map(|(bucket, recovered)| {
            let counts = |it: &Metadata| !it.is_taken && bucket.is_on_path(it.occupant.leaf);
            let occupant = |recovered| {
                let metadata = self.format.get(recovered)?;
                Ok(metadata.filter(counts).map(|metadata| metadata.occupant))
            };
            recovered
                .chunks_exact(elements)
                .map(occupant)
                .collect::<Result<_, _>>()
                .map(Occupants::new)
        });
        occupants.collect()
    }

    /// Finds the position of a block from the metadata of the path to `shown` (Subroutine 1, step
    /// 1); `None` for a block without a leaf.
    ///
    /// # Errors
    /// [`ClientError::Metadata`] if `mapped` is a leaf and the block is not on the path exactly
    /// once with this leaf, or if `mapped` is `None` and the block is on the path. Also the errors
    /// of [`Self::occupants`].
    pub(crate) fn find(
        &self,
        label: usize,
        mapped: Option<Leaf>,
        shown: Leaf,
        answers: &Answers<F::Element>,
    ) -> Result<Option<Position>, ClientError> {
        let path = self.occupants(shown, answers)?;
        let slots = (0..).zip(&path).flat_map(|(level, bucket)| {
            bucket.iter().enumerate().map(move |(slot, it)| (level, slot, *it))
        });
        // Subroutine 1, step 1: the slot that holds the block.
        let mut found = slots.filter_map(|(level, slot, occupant)| {
            let Occupant { leaf, .. } = occupant.filter(|it| it.label == label)?;
            Some(Position { leaf, level, slot })
        });
        let (position, another) = (found.next(), found.next());
        if another.is_some() || position.map(|position| position.leaf) != mapped {
            return Err(ClientError::Metadata);
        }
        Ok(position)
    }

    /// Returns the sealed block in a recovered slot, whose metadata must match `expected`. If
    /// `expected` is `None`, the metadata must be zeros, and the bytes after them are returned
    /// unchecked: zeros, if the servers are honest.
    ///
    /// # Errors
    /// [`ClientError::Metadata`] if the metadata does not match.
    pub(crate) fn sealed<'s>(
        &self,
        expected: Option<Occupant>,
        slot: &'s [F::Element],
    ) -> Result<&'s [F::Element], ClientError> {
        let (metadata, block) = slot.split_at(self.format.elements());
        let expected = expected.map(|occupant| Metadata { occupant, is_taken: false });
        if self.format.get(metadata)? == expected { Ok(block) } else { Err(ClientError::Metadata) }
    }

    /// Builds the contents of a slot: a block with its metadata, or a dummy with metadata of zeros.
    pub(crate) fn slot(
        &self,
        occupant: Option<Occupant>,
        block: &[F::Element],
    ) -> Zeroizing<Vec<F::Element>> {
        let mut slot = Zeroizing::new(vec![F::ZERO; self.level.slot_elements()]);
        let (metadata, data) = slot.split_at_mut(self.format.elements());
        if let Some(occupant) = occupant {
            self.format.put(occupant, metadata);
        }
        data.copy_from_slice(block);
        slot
    }

    /// The two leaves whose paths contain all buckets of the next eviction: the leaf of the evicted
    /// path, and the leaf's sibling.
    pub(crate) fn eviction_leaves(&self) -> [Leaf; 2] {
        let evicted = self.level.tree.evicted(self.client.evictions());
        [evicted, self.level.tree.sibling_leaf(evicted)]
    }

    /// Plans the next eviction from the metadata of the two [`Self::eviction_leaves`].
    ///
    /// # Errors
    /// [`ClientError::Overflow`], and errors about the answers.
    pub(crate) fn next_eviction(
        &self,
        answers: [&Answers<F::Element>; 2],
    ) -> Result<EvictionPlan<F::Element>, ClientError> {
        let [evicted, sibling] = self.eviction_leaves();
        let path = self.occupants(evicted, answers[0])?;
        let sibling = self.occupants(sibling, answers[1])?.pop().unwrap_or_default();
        plan_eviction::<F>(
            self.level.tree,
            self.client.evictions(),
            EvictionContents { path, sibling },
        )
    }
}

#[cfg(test)]
mod tests;
