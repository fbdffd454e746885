//! One server, with a share of every block. It handles all blocks in the same way, for every
//! request.
//!
//! Requests are untrusted. Each is checked first, and a refused request changes nothing.
//!
//! An eviction counts on all servers or on none. The new buckets replace the old ones once this
//! server has finished. The replaced buckets are kept until all servers have finished. Until then
//! each server can roll back, and the client sends the same requests again.

mod eviction;
mod metadata;

use std::collections::HashMap;
use std::sync::Arc;

use oblivio_core::BucketId;

use crate::field::Field;
use crate::message::{RootWrite, Select, Slots};
use crate::sharing::{Parties, Share};
use crate::tree::Tree;
use eviction::{Evicting, RollbackState};
use metadata::PathQuery;

/// One server of a tree, with its shares in memory.
pub struct Server<F: Field> {
    number: u8,
    parties: Parties,
    tree: Tree,
    block_elements: usize,
    /// The number of metadata elements at the beginning of each slot. 0 if the client knows the
    /// position of every block.
    metadata_elements: usize,
    /// The query of a selected block that is not yet written back. Kept only if slots have
    /// metadata.
    last_query: Option<PathQuery<F::Element>>,
    /// This server's shares of the buckets that may hold blocks; a bucket without an entry is all
    /// zeros. Which buckets have entries is public: it follows from the numbers of loads, writes
    /// and evictions.
    buckets: HashMap<BucketId, Bucket<F::Element>>,
    /// The elements of an empty slot: all zeros.
    zeros: Vec<F::Element>,
    /// The number of blocks written to the root since the last eviction.
    written: usize,
    /// The number of finished evictions.
    evictions: u64,
    evicting: Option<Evicting<F::Element>>,
    /// The state before the last eviction, until all servers have finished the eviction.
    rollback: Option<RollbackState<F::Element>>,
    /// The number of the last attempt to evict. The next attempt must have a greater number.
    attempt: u64,
}

/// The slots of a bucket, one after the other.
type Bucket<E> = Arc<Vec<E>>;

/// A server's progress. Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The number of finished evictions.
    pub evictions: u64,
    /// The number of blocks written to the root since the last eviction.
    pub written: usize,
    /// The stage, which decides which requests the server accepts next.
    pub stage: Stage,
}

/// What a server is doing: nothing, an eviction, or waiting for the commit of an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The server accepts selects and writes, or the next eviction.
    Settled,
    /// An eviction is in progress.
    Evicting,
    /// This server has finished the last eviction. The eviction counts once all servers
    /// [commit](Server::commit).
    Over,
}

/// Why a server refused a request. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub(crate) &'static str);

const WRONG_LENGTH: Refused = Refused("a share has the wrong length");
const IS_NOT_SETTLED: Refused =
    Refused("an eviction is in progress: wait until all servers have finished it");

impl<F: Field> Server<F> {
    /// Creates server `number`, with blocks that are all zeros.
    ///
    /// # Errors
    /// If no server has this number.
    pub fn new(
        number: u8,
        parties: Parties,
        tree: Tree,
        block_elements: usize,
    ) -> Result<Self, Refused> {
        if !parties.are_distinct_servers(&[number]) {
            return Err(Refused("there is no server of this number"));
        }
        Ok(Self {
            number,
            parties,
            tree,
            block_elements,
            metadata_elements: 0,
            last_query: None,
            buckets: HashMap::new(),
            zeros: vec![F::ZERO; block_elements],
            written: 0,
            evictions: 0,
            evicting: None,
            rollback: None,
            attempt: 0,
        })
    }

    /// Stores the initial contents of slots of a leaf (Algorithm 3, steps 14 and 15).
    ///
    /// # Errors
    /// If the slots are not slots of a leaf, the share is invalid, or the tree is not new.
    pub fn load(&mut self, slots: Slots, share: Share<F::Element>) -> Result<(), Refused> {
        let Slots { bucket, first, count } = slots;
        let end = first.checked_add(count).filter(|end| *end <= self.tree.slots());
        let Some(end) = end.filter(|_| bucket.level() == self.tree.height()) else {
            return Err(Refused("no leaf of the tree has these slots"));
        };
        let new = Epoch { evictions: 0, written: 0, stage: Stage::Settled };
        if self.epoch() != new {
            return Err(Refused("the tree was used before: load data into a new tree"));
        }
        let elements = self.block_elements;
        let share = share.into_elements::<F>(count * elements).ok_or(WRONG_LENGTH)?;
        let nothing = || Arc::new(vec![F::ZERO; self.tree.slots() * elements]);
        let held = Arc::make_mut(self.buckets.entry(bucket).or_insert_with(nothing));
        // Alg. 3, step 14: put this server's shares into the slots.
        held[first * elements..end * elements].copy_from_slice(&share);
        Ok(())
    }

    /// This server's progress.
    pub fn epoch(&self) -> Epoch {
        let stage = match (&self.evicting, &self.rollback) {
            (Some(_), _) => Stage::Evicting,
            (None, Some(_)) => Stage::Over,
            (None, None) => Stage::Settled,
        };
        Epoch { evictions: self.evictions, written: self.written, stage }
    }

    fn check_settled(&self) -> Result<(), Refused> {
        (self.epoch().stage == Stage::Settled).then_some(()).ok_or(IS_NOT_SETTLED)
    }

    /// Returns the share of the selected block, of degree 2*t* (Subroutine 1, steps 4 to 8).
    ///
    /// # Errors
    /// If the tree has no such path, the query is invalid, or an eviction is in progress or not
    /// committed.
    pub fn select(&mut self, select: Select<F::Element>) -> Result<Vec<F::Element>, Refused> {
        let Select { leaf, query } = select;
        if leaf.0 >= self.tree.leaves() {
            return Err(Refused("the tree has no such path"));
        }
        self.check_settled()?;
        let query = query.into_elements::<F>(self.tree.path_slots()).ok_or(WRONG_LENGTH)?;
        // Subroutine 1, steps 4 and 6: all slots of the path.
        let slots: Vec<_> = self.tree.path(leaf).flat_map(|bucket| self.slots(bucket)).collect();
        // Subroutine 1, steps 5 and 7: query × slots, for all chunks at once (Alg. 5, Retrieve).
        let mut answer = vec![F::ZERO; self.block_elements];
        F::combine(&mut answer, &query, 1, &slots);
        self.last_query = (self.metadata_elements > 0).then_some(PathQuery { leaf, query });
        Ok(answer)
    }

    /// Stores the share of a block in the root.
    ///
    /// # Errors
    /// If the slot is not the next free slot, the root is full, the share is invalid, or an
    /// eviction is in progress or not committed. With metadata, also if no block was selected.
    pub fn write(&mut self, write: RootWrite<F::Element>) -> Result<(), Refused> {
        let RootWrite { slot, block } = write;
        self.check_settled()?;
        if slot != self.written || slot == self.tree.accesses() {
            return Err(Refused(
                "this is not the next slot of the root, or the root is full and must be evicted",
            ));
        }
        let block = block.into_elements::<F>(self.block_elements).ok_or(WRONG_LENGTH)?;
        self.mark_taken()?;
        let elements = self.bucket_elements();
        let root = self.buckets.entry(BucketId::ROOT);
        let root = root.or_insert_with(|| Arc::new(vec![F::ZERO; elements]));
        let start = slot * self.block_elements;
        // Protocol 2, step 10: write the share to the slot of the root.
        // The `Arc` is not shared while no eviction is in progress.
        Arc::make_mut(root)[start..start + self.block_elements].copy_from_slice(&block);
        // Protocol 2, step 11: an eviction sets the counter to 0.
        self.written += 1;
        Ok(())
    }

    fn bucket_elements(&self) -> usize {
        self.tree.slots() * self.block_elements
    }

    /// The slots of a bucket. An empty bucket (`None`) has the same number of slots, all zeros.
    fn slots_of<'b>(
        &'b self,
        bucket: Option<&'b Bucket<F::Element>>,
    ) -> impl Iterator<Item = &'b [F::Element]> {
        let slot = move |slot: usize| match bucket {
            Some(elements) => &elements[slot * self.block_elements..][..self.block_elements],
            None => &self.zeros[..],
        };
        (0..self.tree.slots()).map(slot)
    }

    /// The slots of the bucket with this ID, which are zeros in an empty bucket.
    fn slots(&self, bucket: BucketId) -> impl Iterator<Item = &[F::Element]> {
        self.slots_of(self.buckets.get(&bucket))
    }
}
