//! One tree of which the client is told to which leaf a block is mapped, and asks its slots for the rest.

use oblivio_core::Leaf;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::levels::Level;
use super::metadata::{Metadata, MetadataFormat};
use crate::answers::{Answers, decode_from};
use crate::client::{Client, ClientError, Next, Occupant, Occupants, Occupied, Position, plan};
use crate::field::Field;
use crate::message::{Evict, Point, RootWrite, Select};
use crate::sharing::Parties;

/// The client of a tree.
pub(crate) struct MappedTree<F> {
    parties: Parties,
    level: Level,
    format: MetadataFormat<F>,
    /// It asks for slots that it is told. It knows no block, so that it takes no memory.
    client: Client<F>,
}

impl<F: Field> MappedTree<F> {
    pub(crate) fn new(parties: Parties, level: Level) -> Result<Self, ClientError> {
        let format = MetadataFormat::new(level.tree, level.labels);
        let client = Client::new(parties, level.tree, 0, level.slot_elements())?;
        Ok(Self { parties, level, format, client })
    }

    pub(crate) fn draw_leaf(&self, coins: &mut dyn CryptoRng) -> Leaf {
        self.client.draw_leaf(coins)
    }

    /// Goes on from there. What was shared at this turn before, with the same coins, is the same again.
    pub(crate) fn go_to(&mut self, at: Point, turn: u64) {
        self.client.go_to(at);
        self.client.go_to_turn(turn);
    }

    /// The blocks on a path that count, from what servers have answered of it: those that were not taken since, and that are where they belong. An eviction copies a
    /// bucket to its sibling as a whole, so there are copies on paths that they are not mapped to.
    pub(crate) fn occupants(
        &self,
        leaf: Leaf,
        answers: &Answers<F::Element>,
    ) -> Result<Vec<Occupants>, ClientError> {
        let (tree, elements) = (self.level.tree, self.format.elements());
        let all = tree.path_slots() * elements;
        let Answers { numbers, shares } = answers;
        let colluding = self.parties.colluding();
        let said = decode_from::<F>(self.parties, colluding + 1, numbers, shares, all)
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

    /// Asks for the slot at this place, or for none (Subroutine 1, steps 2 and 3).
    pub(crate) fn queries(
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
    pub(crate) fn block(
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

    /// A slot that holds a block, or something that is none, of which nothing is said.
    pub(crate) fn slot(
        &self,
        occupant: Option<Occupant>,
        block: &[F::Element],
    ) -> Zeroizing<Vec<F::Element>> {
        let mut slot = Zeroizing::new(vec![F::ZERO; self.level.slot_elements()]);
        let (said, data) = slot.split_at_mut(self.format.elements());
        if let Some(occupant) = occupant {
            self.format.put(occupant, said);
        }
        data.copy_from_slice(block);
        slot
    }

    /// Writes a slot to the root (Protocol 2, steps 5 to 11).
    pub(crate) fn writes(
        &mut self,
        slot: &[F::Element],
        coins: &mut dyn CryptoRng,
    ) -> Vec<RootWrite<F::Element>> {
        let writes = self.client.writes(self.client.at().written, slot, coins);
        // Where it is mapped to, it says itself.
        self.client.keep(None, Leaf(0));
        writes
    }

    /// The paths of which an eviction has to know: the one that it evicts, and the one to the leaf beside it.
    pub(crate) fn evicted(&self) -> [Leaf; 2] {
        let evicted = self.level.tree.evicted(self.client.evictions());
        [evicted, self.level.tree.beside(evicted)]
    }

    /// What the next eviction moves, from what slots of these two say.
    ///
    /// # Errors
    /// [`ClientError::Overflow`], and those of what was answered.
    pub(crate) fn next_eviction(
        &self,
        answers: [&Answers<F::Element>; 2],
    ) -> Result<Next<F::Element>, ClientError> {
        let [evicted, beside] = self.evicted();
        let path = self.occupants(evicted, answers[0])?;
        let beside = self.occupants(beside, answers[1])?.pop().unwrap_or_default();
        plan::<F>(self.level.tree, self.client.evictions(), Occupied { path, beside })
    }

    /// What to send to each server so that it makes that eviction, as this attempt: shared anew each time.
    pub(crate) fn eviction_shares(
        &mut self,
        next: &Next<F::Element>,
        attempt: u64,
        coins: &mut dyn CryptoRng,
    ) -> Vec<Evict<F::Element>> {
        self.client.eviction_shares(next, attempt, coins)
    }
}

#[cfg(test)]
mod tests;
