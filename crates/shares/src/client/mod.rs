//! The client: it knows where each block is, says what each server is to do, and puts their answers together.
//!
//! An access is [selected](Client::select), [recovered](Client::recover) and [written](Client::write) back to the root, whether it
//! reads or writes (Protocol 2). After so many accesses as the tree says, a path is [evicted](Client::evict). What it shows are a path,
//! which is drawn for each access anew, and counters; the rest are shares.

mod error;
mod eviction;
mod positions;

use std::marker::PhantomData;

use oblivio_core::{BucketId, Leaf};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::answers::{self, Recovered};
use crate::field::Field;
use crate::message::{Evict, Point, RootWrite, Select, Slots};
use crate::sharing::{Parties, Share, share};
use crate::tree::Tree;
pub use error::ClientError;
pub(crate) use eviction::{Occupant, Occupants, Occupied, Plan as Next, plan};
pub(crate) use positions::{Position, Positions};

/// What a server is asked in this field.
type SelectOf<F> = Select<<F as Field>::Element>;

/// Of one tree.
pub struct Client<F> {
    parties: Parties,
    tree: Tree,
    block_elements: usize,
    positions: Positions,
    /// Blocks written to the root since the last eviction: the paper's `n_r`.
    written: usize,
    /// The paper's `n_e`. It is counted on, so that nothing is ever evicted under a number twice.
    evictions: u64,
    /// How often something was shared.
    turns: u64,
    /// The block that was asked for and is not written back yet: if its path were asked for again, that would show.
    selected: Option<usize>,
    field: PhantomData<F>,
}

/// A block that was asked for, and has to be written back.
#[derive(Debug)]
#[must_use = "what was selected is to be written back to the root"]
pub struct Selected {
    address: usize,
}

impl<F: Field> Client<F> {
    /// Of so many blocks, all zeros (Algorithm 3, of an empty database): the servers have nothing yet, and it takes no time.
    ///
    /// # Errors
    /// [`ClientError::NoSuchBlock`] for more than [`Tree::blocks_max`].
    pub fn new(
        parties: Parties,
        tree: Tree,
        blocks: usize,
        block_elements: usize,
    ) -> Result<Self, ClientError> {
        if blocks as u64 > tree.blocks_max() {
            return Err(ClientError::NoSuchBlock);
        }
        let positions = Positions::new(tree, blocks);
        let field = PhantomData;
        Ok(Self {
            parties,
            tree,
            block_elements,
            positions,
            written: 0,
            evictions: 0,
            turns: 0,
            selected: None,
            field,
        })
    }

    /// Puts data into a tree of which nothing has been used yet (Algorithm 3): maps each block to a leaf that is drawn, and hands over what to send to each
    /// server, so many slots at once, leaf by leaf. `block` puts the data of a block where it is told to, and answers whether it has any.
    ///
    /// Blocks go to leaves alone. Buckets above them are filled by evictions, which take for granted what is empty.
    ///
    /// # Errors
    /// Those of `block` and `send`: nothing can be done with the tree then. [`ClientError::Overflow`] if more blocks are mapped to a leaf than it has slots: that is
    /// as unlikely as that an eviction overflows it, and with other coins it is not so. [`ClientError::IsUsed`] for a tree that was.
    pub fn load<E: From<ClientError>>(
        &mut self,
        at_once: usize,
        coins: &mut dyn CryptoRng,
        mut block: impl FnMut(usize, &mut [F::Element]) -> Result<bool, E>,
        mut send: impl FnMut(Slots, Vec<Share<F::Element>>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.turns > 0 {
            return Err(ClientError::IsUsed.into());
        }
        // As secret as the positions.
        let mut blocks_of = vec![Zeroizing::new(Vec::new()); self.tree.leaves() as usize];
        for address in 0..self.positions.blocks() {
            blocks_of[self.draw_leaf(coins).0 as usize].push(address);
        }
        let level = self.tree.height();
        let is_full = |blocks: &Zeroizing<Vec<usize>>| blocks.len() > self.tree.slots();
        if let Some(leaf) = blocks_of.iter().position(is_full) {
            return Err(ClientError::Overflow(BucketId::on_path(Leaf(leaf as u64), level)).into());
        }
        let mut data = Zeroizing::new(vec![F::ZERO; at_once * self.block_elements]);
        for (leaf, blocks) in (0..).map(Leaf).zip(blocks_of) {
            let bucket = BucketId::on_path(leaf, level);
            for slots in Slots::runs(bucket, self.tree.slots(), at_once) {
                let data = &mut data[..slots.count * self.block_elements];
                data.fill(F::ZERO);
                let there = blocks.iter().zip(0..).skip(slots.first);
                for ((address, slot), data) in there.zip(data.chunks_exact_mut(self.block_elements))
                {
                    if block(*address, data)? {
                        self.positions.set(*address, Position { leaf, level, slot });
                    }
                }
                // Slots without a block are shared as well: which they are does not show.
                send(slots, share::<F>(self.parties, data, self.next_turn(), coins))?;
            }
        }
        Ok(())
    }

    /// Whether the next thing has to be an eviction.
    pub fn must_evict(&self) -> bool {
        self.written >= self.tree.accesses()
    }

    /// How many evictions there were.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Asks for a block (Subroutine 1, steps 1 to 3): what to send to each server, in their order.
    ///
    /// A block that was never written is nowhere. A path that is drawn is asked for it, and no slot of it.
    ///
    /// # Errors
    /// When there is no such block, or an eviction or the block before comes first.
    pub fn select(
        &mut self,
        address: usize,
        coins: &mut dyn CryptoRng,
    ) -> Result<(Selected, Vec<SelectOf<F>>), ClientError> {
        if address >= self.positions.blocks() {
            return Err(ClientError::NoSuchBlock);
        }
        if self.selected.is_some() {
            return Err(ClientError::IsSelected);
        }
        if self.must_evict() {
            return Err(ClientError::MustEvict);
        }
        // It is drawn for both.
        let drawn = self.draw_leaf(coins);
        let position = self.positions.get(address);
        let leaf = position.map_or(drawn, |position| position.leaf);
        let queries = self.queries(Some(address), leaf, coins);
        self.selected = Some(address);
        Ok((Selected { address }, queries))
    }

    /// What to send to each server so that it answers the share of a block, on a path that was drawn before. What is nowhere, and what is no block, has no slot there.
    pub(crate) fn queries(
        &mut self,
        address: Option<usize>,
        leaf: Leaf,
        coins: &mut dyn CryptoRng,
    ) -> Vec<SelectOf<F>> {
        let position = address.and_then(|address| self.positions.get(address));
        self.queries_at(position, leaf, coins)
    }

    /// The same of a block of which it is known where it is.
    pub(crate) fn queries_at(
        &mut self,
        position: Option<Position>,
        leaf: Leaf,
        coins: &mut dyn CryptoRng,
    ) -> Vec<SelectOf<F>> {
        let mut query = Zeroizing::new(vec![F::ZERO; self.tree.path_slots()]);
        if let Some(Position { level, slot, .. }) = position {
            query[usize::from(level) * self.tree.slots() + slot] = F::ONE;
        }
        let shares = share::<F>(self.parties, &query, self.next_turn(), coins);
        shares.into_iter().map(|query| Select { leaf, query }).collect()
    }

    /// The block, from what servers `numbers` have answered: 2*t* + 1 of them at least. With more, wrong answers are noticed, and corrected if they are few.
    ///
    /// # Errors
    /// [`ClientError::Answers`].
    pub fn recover(
        &self,
        numbers: &[u8],
        answers: &[Vec<F::Element>],
    ) -> Result<Recovered<F::Element>, ClientError> {
        answers::decode::<F>(self.parties, numbers, answers, self.block_elements)
            .map_err(ClientError::Answers)
    }

    /// Maps the block that was selected to a new path, and writes it to the root (steps 2 and 5 to 11 of Protocol 2): what to send to
    /// each server.
    ///
    /// # Errors
    /// [`ClientError::BlockLength`], and [`ClientError::IsSelected`] for another block than was selected last.
    pub fn write(
        &mut self,
        selected: &Selected,
        block: &[F::Element],
        coins: &mut dyn CryptoRng,
    ) -> Result<Vec<RootWrite<F::Element>>, ClientError> {
        if block.len() != self.block_elements {
            return Err(ClientError::BlockLength);
        }
        let Selected { address } = *selected;
        if self.selected != Some(address) {
            return Err(ClientError::IsSelected);
        }
        self.selected = None;
        let (leaf, slot) = (self.draw_leaf(coins), self.written);
        let writes = self.writes(slot, block, coins);
        self.keep(Some(address), leaf);
        Ok(writes)
    }

    /// What to send to each server so that it puts a block into a slot of the root.
    pub(crate) fn writes(
        &mut self,
        slot: usize,
        block: &[F::Element],
        coins: &mut dyn CryptoRng,
    ) -> Vec<RootWrite<F::Element>> {
        let shares = share::<F>(self.parties, block, self.next_turn(), coins);
        shares.into_iter().map(|block| RootWrite { slot, block }).collect()
    }

    /// A block, or none, is in the next slot of the root, and mapped to a path that was drawn.
    pub(crate) fn keep(&mut self, address: Option<usize>, leaf: Leaf) {
        if let Some(address) = address {
            self.positions.set(address, Position { leaf, level: 0, slot: self.written });
        }
        self.written += 1;
    }

    /// Evicts the next path (Subroutine 3, steps 1 to 17): what to send to each server. It may be done ahead of its time.
    ///
    /// If servers do not come to an end with it, all [go back](crate::server::Server::go_back), and are sent the same again as a
    /// [later attempt](Self::next_attempt): the same shares say nothing more.
    ///
    /// # Errors
    /// [`ClientError::Overflow`], and [`ClientError::IsSelected`] in the middle of an access.
    pub fn evict(
        &mut self,
        coins: &mut dyn CryptoRng,
    ) -> Result<Vec<Evict<F::Element>>, ClientError> {
        if self.selected.is_some() {
            return Err(ClientError::IsSelected);
        }
        let next = self.next_eviction()?;
        let attempt = self.next_turn();
        let evictions = self.eviction_shares(&next, attempt, coins);
        self.evicted(next);
        Ok(evictions)
    }

    /// What the next eviction moves. It is long to find, and the same as often as it is asked for.
    pub(crate) fn next_eviction(&self) -> Result<Next<F::Element>, ClientError> {
        let occupied = Occupied::find(self.tree, self.evictions, &self.positions);
        plan::<F>(self.tree, self.evictions, occupied)
    }

    /// What to send to each server so that it makes that eviction, as this attempt: shared anew each time.
    pub(crate) fn eviction_shares(
        &mut self,
        next: &Next<F::Element>,
        attempt: u64,
        coins: &mut dyn CryptoRng,
    ) -> Vec<Evict<F::Element>> {
        let nothing = |_| Evict { number: next.number, attempt, matrices: Vec::new() };
        let mut evictions: Vec<_> = self.parties.numbers().map(nothing).collect();
        for matrix in &next.matrices {
            let shares = share::<F>(self.parties, matrix, self.next_turn(), coins);
            evictions.iter_mut().zip(shares).for_each(|(evict, share)| evict.matrices.push(share));
        }
        evictions
    }

    /// All servers are through with that eviction: blocks are where it has put them.
    pub(crate) fn evicted(&mut self, next: Next<F::Element>) {
        for (address, position) in next.moves {
            self.positions.set(address, position);
        }
        (self.evictions, self.written) = (self.evictions + 1, 0);
    }

    /// Goes on from this turn: what was shared at the same turns before, with the same coins, is the same again.
    pub(crate) fn go_to_turn(&mut self, turn: u64) {
        self.turns = turn;
    }

    /// Goes on from there. The positions are those of that point.
    pub(crate) fn go_to(&mut self, at: Point) {
        (self.evictions, self.written) = (at.evictions, at.written);
    }

    /// Where each block is.
    pub(crate) fn positions(&self) -> &Positions {
        &self.positions
    }

    /// The same, to be told.
    pub(crate) fn positions_mut(&mut self) -> &mut Positions {
        &mut self.positions
    }

    /// The number of a further attempt to evict a path.
    pub fn next_attempt(&mut self) -> u64 {
        self.next_turn()
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    pub(crate) fn draw_leaf(&self, coins: &mut dyn CryptoRng) -> Leaf {
        // There are a power of two of them.
        Leaf(coins.next_u64() & (self.tree.leaves() - 1))
    }
}
