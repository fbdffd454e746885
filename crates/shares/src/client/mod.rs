//! The client: it keeps the position map, sends requests to each server, and combines their
//! answers.
//!
//! In every access, a read or a write, the client [selects](Client::select) a block,
//! [recovers](Client::recover) it from the answers, and [writes](Client::write) it back to the root
//! (Protocol 2). After at most *A* accesses ([`Tree::accesses`]), the client
//! [evicts](Client::evict) a path. Servers see the path of each access, which is random, and
//! counters. All other data is shared.

mod error;
mod eviction;
mod positions;

use std::marker::PhantomData;

use oblivio_core::{BucketId, Leaf};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::answers::{self, Recovered};
use crate::field::Field;
use crate::message::{Evict, RootWrite, Select, Slots, TreePoint};
use crate::sharing::{Parties, Share, share};
use crate::tree::Tree;
pub use error::ClientError;
pub(crate) use eviction::{EvictionContents, EvictionPlan, Occupant, Occupants, plan_eviction};
pub(crate) use positions::{Position, Positions};

/// A selection request with elements of the field `F`.
type SelectOf<F> = Select<<F as Field>::Element>;

/// The client of one tree, with the position of each block.
pub struct Client<F> {
    parties: Parties,
    tree: Tree,
    block_elements: usize,
    positions: Positions,
    /// Number of blocks written to the root since the last eviction: the paper's `n_r`.
    written: usize,
    /// Number of evictions: the paper's `n_e`. It only grows, so no eviction number is used twice.
    evictions: u64,
    /// Counts the shared secrets and the numbered eviction attempts. The count determines which
    /// servers receive a seed instead of a share.
    turns: u64,
    /// The address of the block that was selected and is not yet written back. Selecting it again
    /// would show the same path twice.
    selected: Option<usize>,
    field: PhantomData<F>,
}

/// A selected block, which must be written back.
#[derive(Debug)]
#[must_use = "a selected block must be written back to the root"]
pub struct Selected {
    address: usize,
}

impl<F: Field> Client<F> {
    /// Creates the client of a tree with `blocks` blocks of zeros (Algorithm 3, for an empty
    /// database). Nothing is sent to the servers.
    ///
    /// # Errors
    /// [`ClientError::NoSuchBlock`] if the tree cannot hold `blocks` blocks ([`Tree::blocks_max`]).
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
            // Alg. 3, step 3: both counters start at 0.
            written: 0,
            evictions: 0,
            turns: 0,
            selected: None,
            field,
        })
    }

    /// Loads data into a new tree (Algorithm 3). Maps each block to a random leaf. Passes the
    /// shares for each server to `send`, leaf by leaf, at most `at_once` slots at a time. `block`
    /// writes the data of a block into its argument, and returns whether the block has data.
    ///
    /// Blocks are loaded only into leaves. Evictions fill the buckets above, and rely on which of
    /// them are empty.
    ///
    /// # Errors
    /// The errors of `block` and `send`, after which the tree is unusable.
    /// [`ClientError::Overflow`] if more blocks are mapped to a leaf than the leaf has slots; this
    /// is as unlikely as an overflow in an eviction, and loading with other coins avoids it.
    /// [`ClientError::IsUsed`] if the tree is not new.
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
        // The blocks of each leaf are as secret as the positions.
        let mut blocks_of = vec![Zeroizing::new(Vec::new()); self.tree.leaves() as usize];
        // Alg. 3, steps 4 and 5: a random leaf for each block.
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
                    // Alg. 3, steps 6 to 8: put the block into a slot, and note the slot.
                    if block(*address, data)? {
                        self.positions.set(*address, Position { leaf, level, slot });
                    }
                }
                // Alg. 3, steps 9 to 15: share and send all slots, to hide which slots are empty.
                send(slots, share::<F>(self.parties, data, self.next_turn(), coins))?;
            }
        }
        Ok(())
    }

    /// Whether the next operation must be an eviction.
    pub fn must_evict(&self) -> bool {
        // Protocol 2, step 12: whether the root has received A blocks.
        self.written >= self.tree.accesses()
    }

    /// The number of evictions so far.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Selects a block (Subroutine 1, steps 1 to 3). Returns a request for each server, in the
    /// order of the servers.
    ///
    /// A block that was never written has no position. Its query selects no slot of a random path.
    ///
    /// # Errors
    /// If there is no such block, an eviction is due, or another block is selected.
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
        // Draw a leaf even if the block has a position, so that every access consumes the same
        // coins.
        let drawn = self.draw_leaf(coins);
        // Subroutine 1, step 1: look up the leaf and the slot.
        let position = self.positions.get(address);
        let leaf = position.map_or(drawn, |position| position.leaf);
        // Subroutine 1, steps 2 and 3: the query for each server, sent with the leaf.
        let queries = self.queries(Some(address), leaf, coins);
        self.selected = Some(address);
        Ok((Selected { address }, queries))
    }

    /// Creates the selection request for each server, for the path to `leaf`. The query selects no
    /// slot if `address` is `None` or the block has no position.
    pub(crate) fn queries(
        &mut self,
        address: Option<usize>,
        leaf: Leaf,
        coins: &mut dyn CryptoRng,
    ) -> Vec<SelectOf<F>> {
        let position = address.and_then(|address| self.positions.get(address));
        self.queries_at(position, leaf, coins)
    }

    /// Creates the selection request for each server as [`Self::queries`] does, for a block at the
    /// given position.
    pub(crate) fn queries_at(
        &mut self,
        position: Option<Position>,
        leaf: Leaf,
        coins: &mut dyn CryptoRng,
    ) -> Vec<SelectOf<F>> {
        // Alg. 5, CreateQuery, step 1: a unit vector.
        let mut query = Zeroizing::new(vec![F::ZERO; self.tree.path_slots()]);
        if let Some(Position { level, slot, .. }) = position {
            query[usize::from(level) * self.tree.slots() + slot] = F::ONE;
        }
        // Alg. 5, CreateQuery, steps 2 to 5: share its elements.
        let shares = share::<F>(self.parties, &query, self.next_turn(), coins);
        shares.into_iter().map(|query| Select { leaf, query }).collect()
    }

    /// Recovers the block from the answers of servers `numbers`, at least 2*t* + 1. More answers
    /// make it possible to detect wrong ones, and to correct them if they are few.
    ///
    /// # Errors
    /// [`ClientError::Answers`] if the answers do not determine a block.
    pub fn recover(
        &self,
        numbers: &[u8],
        answers: &[Vec<F::Element>],
    ) -> Result<Recovered<F::Element>, ClientError> {
        // Subroutine 1, steps 9 to 11: reconstruct all chunks (Alg. 5, Reconstruct).
        answers::decode::<F>(self.parties, numbers, answers, self.block_elements)
            .map_err(ClientError::Answers)
    }

    /// Maps the selected block to a new path and writes it to the root (steps 2 and 5 to 11 of
    /// Protocol 2). Returns a request for each server.
    ///
    /// # Errors
    /// [`ClientError::BlockLength`], and [`ClientError::IsSelected`] if the block is not, or no
    /// longer, the selected one.
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
        // Protocol 2, step 2: a new random leaf. Step 10: the next slot of the root.
        let (leaf, slot) = (self.draw_leaf(coins), self.written);
        let writes = self.writes(slot, block, coins);
        self.record_write(Some(address), leaf);
        Ok(writes)
    }

    /// Creates the request for each server to write its share of a block to a slot of the root.
    pub(crate) fn writes(
        &mut self,
        slot: usize,
        block: &[F::Element],
        coins: &mut dyn CryptoRng,
    ) -> Vec<RootWrite<F::Element>> {
        // Protocol 2, steps 6 to 8: share the chunks of the block.
        let shares = share::<F>(self.parties, block, self.next_turn(), coins);
        shares.into_iter().map(|block| RootWrite { slot, block }).collect()
    }

    /// Records what the next slot of the root received: the block at `address`, mapped to `leaf`,
    /// or a dummy.
    pub(crate) fn record_write(&mut self, address: Option<usize>, leaf: Leaf) {
        if let Some(address) = address {
            // Protocol 2, steps 2 and 5: note the leaf and the slot.
            self.positions.set(address, Position { leaf, level: 0, slot: self.written });
        }
        // Protocol 2, step 11: `record_eviction` sets the counter to 0.
        self.written += 1;
    }

    /// Evicts the next path (Subroutine 3, steps 1 to 17). Returns a request for each server. The
    /// caller may evict before the root is full.
    ///
    /// If servers do not finish the eviction, all [roll back](crate::server::Server::roll_back) and
    /// receive the same requests again as a [later attempt](Self::next_attempt). Repeating the same
    /// shares reveals nothing more.
    ///
    /// # Errors
    /// [`ClientError::Overflow`], and [`ClientError::IsSelected`] during an access.
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
        self.record_eviction(next);
        Ok(evictions)
    }

    /// Plans the next eviction, which is slow. Until the next access, the plan would stay the same.
    pub(crate) fn next_eviction(&self) -> Result<EvictionPlan<F::Element>, ClientError> {
        let contents = EvictionContents::find(self.tree, self.evictions, &self.positions);
        plan_eviction::<F>(self.tree, self.evictions, contents)
    }

    /// Creates the request for each server to make attempt `attempt` of an eviction. Each call
    /// shares the matrices with fresh coins.
    pub(crate) fn eviction_shares(
        &mut self,
        next: &EvictionPlan<F::Element>,
        attempt: u64,
        coins: &mut dyn CryptoRng,
    ) -> Vec<Evict<F::Element>> {
        let nothing = |_| Evict { number: next.number, attempt, matrices: Vec::new() };
        let mut evictions: Vec<_> = self.parties.numbers().map(nothing).collect();
        // Subroutine 3, steps 15 to 17: share the matrices, for a request to each server.
        for matrix in &next.matrices {
            let shares = share::<F>(self.parties, matrix, self.next_turn(), coins);
            evictions.iter_mut().zip(shares).for_each(|(evict, share)| evict.matrices.push(share));
        }
        evictions
    }

    /// Records an eviction as finished: updates the positions of the moved blocks, and empties the
    /// root.
    pub(crate) fn record_eviction(&mut self, next: EvictionPlan<F::Element>) {
        // Subroutine 3, steps 10 and 12: update the position map.
        for (address, position) in next.moves {
            self.positions.set(address, position);
        }
        // Protocol 2, steps 11 and 14: count the eviction. The root is empty again.
        (self.evictions, self.written) = (self.evictions + 1, 0);
    }

    /// Sets the turn: the count of shared secrets and eviction attempts. Sharing again from the
    /// same turn with the same coins gives the same shares.
    pub(crate) fn set_turn(&mut self, turn: u64) {
        self.turns = turn;
    }

    /// Sets the client's counts of evictions and writes to `at`. The caller must ensure that the
    /// position map is that of this point.
    pub(crate) fn set_progress(&mut self, at: TreePoint) {
        (self.evictions, self.written) = (at.evictions, at.written);
    }

    /// The position map.
    pub(crate) fn positions(&self) -> &Positions {
        &self.positions
    }

    /// The position map, mutable.
    pub(crate) fn positions_mut(&mut self) -> &mut Positions {
        &mut self.positions
    }

    /// Returns the number for another attempt at an eviction, greater than all numbers before.
    pub fn next_attempt(&mut self) -> u64 {
        self.next_turn()
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    pub(crate) fn draw_leaf(&self, coins: &mut dyn CryptoRng) -> Leaf {
        // The number of leaves is a power of two.
        Leaf(coins.next_u64() & (self.tree.leaves() - 1))
    }
}
