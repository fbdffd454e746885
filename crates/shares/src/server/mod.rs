//! One server: it has a share of every block, and does with all of them the same, whatever it is asked.
//!
//! What it is sent may come from anybody. It is checked first, and refused whole: then nothing has changed.
//!
//! An eviction counts on all servers or on none. What it changes is put aside until the server is through with it, and what it has replaced is kept
//! until all are: until then each can go back, and the client sends the same again.

mod eviction;
mod metadata;

use std::collections::HashMap;
use std::sync::Arc;

use oblivio_core::BucketId;

use crate::field::Field;
use crate::message::{RootWrite, Select, Slots};
use crate::sharing::{Parties, Share};
use crate::tree::Tree;
use eviction::{Evicting, Replaced};
use metadata::Asked;

/// Server number *i* of a tree.
pub struct Server<F: Field> {
    number: u8,
    parties: Parties,
    tree: Tree,
    block_elements: usize,
    /// How many elements at the beginning of each slot say whose block it holds: none, if the client knows.
    metadata_elements: usize,
    /// What was selected, and is not written back yet.
    asked: Option<Asked<F::Element>>,
    /// Those that hold something. The others are all zeros, which follows from the number of evictions and is no secret.
    buckets: HashMap<BucketId, Bucket<F::Element>>,
    /// A slot of such a bucket.
    zeros: Vec<F::Element>,
    /// Blocks written to the root since the last eviction.
    written: usize,
    /// Evictions that are over.
    evictions: u64,
    evicting: Option<Evicting<F::Element>>,
    /// What the last eviction has replaced, until all servers agree.
    replaced: Option<Replaced<F::Element>>,
    /// Of the last eviction that was begun: a greater one takes its place.
    attempt: u64,
}

/// The slots of a bucket, one after the other.
type Bucket<E> = Arc<Vec<E>>;

/// How far a server is. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Evictions that are over.
    pub evictions: u64,
    /// Blocks written to the root since the last of them.
    pub written: usize,
    /// What has to come next.
    pub stage: Stage,
}

/// See [`Epoch::stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Blocks are selected and written, or the next path is evicted.
    Settled,
    /// A path is being evicted.
    Evicting,
    /// The last eviction is over here. It counts once all servers [agree](Server::agree).
    Over,
}

/// Why something was not done. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub(crate) &'static str);

const WRONG_LENGTH: Refused = Refused("a share has another length than what is shared");
const IS_NOT_SETTLED: Refused =
    Refused("a path is being evicted: this has to wait until all servers agree that it is");

impl<F: Field> Server<F> {
    /// With blocks that are all zeros.
    ///
    /// # Errors
    /// When there is no server of this number.
    pub fn new(
        number: u8,
        parties: Parties,
        tree: Tree,
        block_elements: usize,
    ) -> Result<Self, Refused> {
        if !parties.are_some(&[number]) {
            return Err(Refused("there are fewer servers"));
        }
        Ok(Self {
            number,
            parties,
            tree,
            block_elements,
            metadata_elements: 0,
            asked: None,
            buckets: HashMap::new(),
            zeros: vec![F::ZERO; block_elements],
            written: 0,
            evictions: 0,
            evicting: None,
            replaced: None,
            attempt: 0,
        })
    }

    /// Keeps what slots of a leaf hold at the beginning (Algorithm 3, steps 14 and 15).
    ///
    /// # Errors
    /// For slots that no leaf has, a share that is none, and once anything else has been done.
    pub fn load(&mut self, slots: Slots, share: Share<F::Element>) -> Result<(), Refused> {
        let Slots { bucket, first, count } = slots;
        let end = first.checked_add(count).filter(|end| *end <= self.tree.slots());
        let Some(end) = end.filter(|_| bucket.level() == self.tree.height()) else {
            return Err(Refused("no leaf of the tree has such slots"));
        };
        let new = Epoch { evictions: 0, written: 0, stage: Stage::Settled };
        if self.epoch() != new {
            return Err(Refused("the tree has been used: data can only be put into a new one"));
        }
        let elements = self.block_elements;
        let share = share.into_elements::<F>(count * elements).ok_or(WRONG_LENGTH)?;
        let nothing = || Arc::new(vec![F::ZERO; self.tree.slots() * elements]);
        let held = Arc::make_mut(self.buckets.entry(bucket).or_insert_with(nothing));
        held[first * elements..end * elements].copy_from_slice(&share);
        Ok(())
    }

    /// How far it is.
    pub fn epoch(&self) -> Epoch {
        let stage = match (&self.evicting, &self.replaced) {
            (Some(_), _) => Stage::Evicting,
            (None, Some(_)) => Stage::Over,
            (None, None) => Stage::Settled,
        };
        Epoch { evictions: self.evictions, written: self.written, stage }
    }

    fn check_settled(&self) -> Result<(), Refused> {
        (self.epoch().stage == Stage::Settled).then_some(()).ok_or(IS_NOT_SETTLED)
    }

    /// The share of the block that is selected, of degree 2*t* (Subroutine 1, steps 4 to 8).
    ///
    /// # Errors
    /// For a path that there is not, a query that is none, and in the middle of an eviction.
    pub fn select(&mut self, select: Select<F::Element>) -> Result<Vec<F::Element>, Refused> {
        let Select { leaf, query } = select;
        if leaf.0 >= self.tree.leaves() {
            return Err(Refused("the tree has no such path"));
        }
        self.check_settled()?;
        let query = query.into_elements::<F>(self.tree.path_slots()).ok_or(WRONG_LENGTH)?;
        let slots: Vec<_> = self.tree.path(leaf).flat_map(|bucket| self.slots(bucket)).collect();
        let mut answer = vec![F::ZERO; self.block_elements];
        F::combine(&mut answer, &query, 1, &slots);
        self.asked = (self.metadata_elements > 0).then_some(Asked { leaf, query });
        Ok(answer)
    }

    /// Keeps the share of a block in the root.
    ///
    /// # Errors
    /// For another slot than the next one, a share that is none, and in the middle of an eviction; and if slots say whose they are, and none was selected.
    pub fn write(&mut self, write: RootWrite<F::Element>) -> Result<(), Refused> {
        let RootWrite { slot, block } = write;
        self.check_settled()?;
        if slot != self.written || slot == self.tree.accesses() {
            return Err(Refused(
                "another slot of the root is next, or the root has to be evicted first",
            ));
        }
        let block = block.into_elements::<F>(self.block_elements).ok_or(WRONG_LENGTH)?;
        self.mark_what_was_taken()?;
        let elements = self.bucket_elements();
        let root = self.buckets.entry(BucketId::ROOT);
        let root = root.or_insert_with(|| Arc::new(vec![F::ZERO; elements]));
        let start = slot * self.block_elements;
        // Nobody else has it while no path is evicted.
        Arc::make_mut(root)[start..start + self.block_elements].copy_from_slice(&block);
        self.written += 1;
        Ok(())
    }

    fn bucket_elements(&self) -> usize {
        self.tree.slots() * self.block_elements
    }

    /// The slots of a bucket, or of one that is all zeros.
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

    /// Those of the bucket of this name.
    fn slots(&self, bucket: BucketId) -> impl Iterator<Item = &[F::Element]> {
        self.slots_of(self.buckets.get(&bucket))
    }
}
