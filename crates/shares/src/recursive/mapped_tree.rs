//! One tree of which the client is told to which leaf a block is mapped, and asks its slots for the rest.

use oblivio_core::Leaf;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::levels::Level;
use super::metadata::{Metadata, MetadataFormat};
use super::servers::Answers;
use crate::answers::decode_from;
use crate::client::{Client, ClientError, Occupant, Occupants, Occupied, Position, plan};
use crate::field::Field;
use crate::message::{Evict, RootWrite, Select};
use crate::sharing::Parties;

/// The client of a tree.
pub(super) struct MappedTree<F> {
    parties: Parties,
    level: Level,
    format: MetadataFormat<F>,
    /// It asks for slots that it is told. It knows no block, so that it takes no memory.
    client: Client<F>,
}

impl<F: Field> MappedTree<F> {
    pub(super) fn new(parties: Parties, level: Level) -> Result<Self, ClientError> {
        let format = MetadataFormat::new(level.tree, level.blocks);
        let client = Client::new(parties, level.tree, 0, level.slot_elements())?;
        Ok(Self { parties, level, format, client })
    }

    pub(super) fn draw_leaf(&self, coins: &mut dyn CryptoRng) -> Leaf {
        self.client.draw_leaf(coins)
    }

    pub(super) fn must_evict(&self) -> bool {
        self.client.must_evict()
    }

    pub(super) fn evictions(&self) -> u64 {
        self.client.evictions()
    }

    /// The blocks on a path that count, from what servers have answered of it: those that were not taken since, and that are where they belong. An eviction copies a
    /// bucket to its sibling as a whole, so there are copies on paths that they are not mapped to.
    fn occupants(
        &self,
        leaf: Leaf,
        answers: &Answers<F::Element>,
    ) -> Result<Vec<Occupants>, ClientError> {
        let (tree, elements) = (self.level.tree, self.format.elements());
        let all = tree.path_slots() * elements;
        let Answers { numbers, shares } = answers;
        let enough = self.parties.colluding() + 1;
        let said = decode_from::<F>(self.parties, enough, numbers, shares, all)
            .map_err(ClientError::Answers)?;
        let said = Zeroizing::new(said.block);
        let buckets = tree.path(leaf).zip(said.chunks_exact(tree.slots() * elements));
        let occupants = buckets.map(|(bucket, said)| {
            let counts = |it: &Metadata| !it.is_taken && bucket.is_on_path(it.occupant.leaf);
            let occupant = |said| {
                let metadata = self.format.get(said)?;
                Ok(metadata.filter(counts).map(|metadata| metadata.occupant))
            };
            said.chunks_exact(elements).map(occupant).collect::<Result<_, _>>().map(Occupants::new)
        });
        occupants.collect()
    }

    /// Where a block is, from what slots of the path say that is shown for it (Subroutine 1, step 1); none for a block that is mapped to no leaf.
    ///
    /// # Errors
    /// [`ClientError::Metadata`] if a block that is mapped is not there once, or one that is not mapped is.
    pub(super) fn find(
        &self,
        address: usize,
        mapped: Option<Leaf>,
        shown: Leaf,
        answers: &Answers<F::Element>,
    ) -> Result<Option<Position>, ClientError> {
        let path = self.occupants(shown, answers)?;
        let slots = (0..).zip(&path).flat_map(|(level, bucket)| {
            bucket.iter().enumerate().map(move |(slot, it)| (level, slot, *it))
        });
        let mut found = slots.filter_map(|(level, slot, occupant)| {
            let Occupant { leaf, .. } = occupant.filter(|it| it.address == address)?;
            Some(Position { leaf, level, slot })
        });
        let (position, another) = (found.next(), found.next());
        if another.is_some() || position.map(|position| position.leaf) != mapped {
            return Err(ClientError::Metadata);
        }
        Ok(position)
    }

    /// Asks for the slot at this place, or for none (Subroutine 1, steps 2 and 3).
    pub(super) fn queries(
        &mut self,
        position: Option<Position>,
        shown: Leaf,
        coins: &mut dyn CryptoRng,
    ) -> Vec<Select<F::Element>> {
        self.client.queries_at(position, shown, coins)
    }

    /// The block that servers have answered, of which this has to be said; or zeros, for none.
    ///
    /// # Errors
    /// [`ClientError::Answers`], and [`ClientError::Metadata`] for another block.
    pub(super) fn block(
        &self,
        expected: Option<Occupant>,
        answers: &Answers<F::Element>,
    ) -> Result<Zeroizing<Vec<F::Element>>, ClientError> {
        let recovered = self.client.recover(&answers.numbers, &answers.shares)?;
        let slot = Zeroizing::new(recovered.block);
        let (said, block) = slot.split_at(self.format.elements());
        let expected = expected.map(|occupant| Metadata { occupant, is_taken: false });
        if self.format.get(said)? != expected {
            return Err(ClientError::Metadata);
        }
        Ok(Zeroizing::new(block.to_vec()))
    }

    /// Writes a block to the root, with what is said of it (Protocol 2, steps 5 to 11).
    pub(super) fn writes(
        &mut self,
        occupant: Occupant,
        block: &[F::Element],
        coins: &mut dyn CryptoRng,
    ) -> Vec<RootWrite<F::Element>> {
        let mut slot = Zeroizing::new(vec![F::ZERO; self.level.slot_elements()]);
        let (said, data) = slot.split_at_mut(self.format.elements());
        self.format.put(occupant, said);
        data.copy_from_slice(block);
        let writes = self.client.writes(self.client.at().written, &slot, coins);
        self.client.keep(None, occupant.leaf);
        writes
    }

    /// The paths of which an eviction has to know: the one that it evicts, and the one to the leaf beside it.
    pub(super) fn evicted(&self) -> [Leaf; 2] {
        let evicted = self.level.tree.evicted(self.evictions());
        [evicted, self.level.tree.beside(evicted)]
    }

    /// Evicts the next path, from what slots of these two say (Subroutine 3, steps 1 to 17).
    ///
    /// # Errors
    /// [`ClientError::Overflow`], and those of what was answered.
    pub(super) fn evict(
        &mut self,
        answers: [&Answers<F::Element>; 2],
        coins: &mut dyn CryptoRng,
    ) -> Result<Vec<Evict<F::Element>>, ClientError> {
        let [evicted, beside] = self.evicted();
        let path = self.occupants(evicted, answers[0])?;
        let beside = self.occupants(beside, answers[1])?.pop().unwrap_or_default();
        let occupied = Occupied { path, beside };
        let next = plan::<F>(self.level.tree, self.evictions(), occupied)?;
        let attempt = self.client.next_attempt();
        let evictions = self.client.eviction_shares(&next, attempt, coins);
        self.client.count_eviction();
        Ok(evictions)
    }
}

#[cfg(test)]
mod tests;
