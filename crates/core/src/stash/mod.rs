//! The client's working memory: blocks that are in no bucket in storage.
//!
//! - `Stash`: the fully associative stash of the papers, with a bound.
//! - `PathPlan`, filled by PushToLeaf: the slot of the path that each block goes to (Tiny ORAM,
//!   section III, Algorithm 1).
//! - `TreeTop`: the buckets nearest the root, kept on the client. They are found by leaf, or also
//!   by address ([`TreeTopKind`]).
//!
//! The bytes of all these blocks are in one `BlockArena` and mostly stay in place when a block
//! moves between them: only its `Entry` moves.
//!
//! Everything here is secret.

mod block_arena;
mod occupancy;
mod push_to_leaf;
mod tree_top;

use alloc::vec;
use alloc::vec::Vec;

pub(crate) use block_arena::{ArenaSlot, BlockArena};
pub use occupancy::Occupancy;
pub(crate) use push_to_leaf::PathPlan;
pub use tree_top::TreeTopKind;
pub(crate) use tree_top::{TreeTop, set_of, sets};

use crate::geometry::Leaf;

/// A block on the client: its address, its leaf, and the location of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) address: u64,
    pub(crate) leaf: Leaf,
    pub(crate) place: ArenaSlot,
}

impl Entry {
    /// The address of a dummy. Truncated to the width of any address field, it is ⊥.
    pub(crate) const DUMMY_ADDRESS: u64 = u64::MAX;

    /// A dummy entry whose bytes are at `zero`.
    pub(crate) fn dummy(zero: ArenaSlot) -> Self {
        Self { address: Self::DUMMY_ADDRESS, leaf: Leaf(0), place: zero }
    }
}

/// The fully associative stash.
///
/// The stash holds blocks in order of arrival. PushToLeaf visits them in this order, or in reverse
/// with a set-associative tree top. So a run can be compared with the literal reference step by
/// step.
pub(crate) struct Stash {
    /// The entries. The first `len` of them are the blocks in the stash; the rest are unused.
    entries: Vec<Entry>,
    len: usize,
    occupancy: Occupancy,
}

impl Stash {
    /// A stash with space for `room` blocks, including the blocks of a path in transit.
    pub(crate) fn new(room: usize, zero: ArenaSlot) -> Self {
        // One extra entry for the dummy that `insert_if` may leave past the end.
        Self {
            entries: vec![Entry::dummy(zero); room + 1],
            len: 0,
            occupancy: Occupancy::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of blocks that can still be inserted.
    pub(crate) fn room(&self) -> usize {
        self.entries.len() - 1 - self.len
    }

    pub(crate) fn occupancy_mut(&mut self) -> &mut Occupancy {
        &mut self.occupancy
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[..self.len]
    }

    #[inline]
    pub(crate) fn insert(&mut self, entry: Entry) {
        self.arrivals().insert_if(entry, true);
    }

    /// Starts inserting the blocks of a path into the stash.
    #[inline]
    pub(crate) fn arrivals(&mut self) -> Arrivals<'_> {
        Arrivals { entries: &mut self.entries, len: self.len, stash_len: &mut self.len }
    }

    #[inline]
    pub(crate) fn find(&mut self, address: u64) -> Option<&mut Entry> {
        self.entries[..self.len].iter_mut().find(|entry| entry.address == address)
    }

    /// Removes a block. The remaining blocks keep their order.
    pub(crate) fn remove(&mut self, address: u64) -> Option<Entry> {
        let held = &mut self.entries[..self.len];
        let at = held.iter().position(|entry| entry.address == address)?;
        held[at..].rotate_left(1);
        self.len -= 1;
        Some(self.entries[self.len])
    }

    /// Drops the blocks for which `keep` returns false, and frees their places. The remaining
    /// blocks keep their order.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool, blocks: &mut BlockArena) {
        let mut remaining = 0;
        for i in 0..self.len {
            let entry = self.entries[i];
            if keep(&entry) {
                self.entries[remaining] = entry;
                remaining += 1;
            } else {
                blocks.free(entry.place);
            }
        }
        self.len = remaining;
    }

    /// Algorithm 1: moves as many blocks as possible, each as deep as possible, from the stash into
    /// `plan` for the path to `leaf`. The remaining blocks keep their order.
    ///
    /// A block stays if its deepest free bucket belongs to `top` and its set there is full. Levels
    /// nearer the root are not tried for this block (IR-ORAM, section IV-C).
    #[inline]
    pub(crate) fn push_to_leaf(&mut self, leaf: Leaf, top: &mut TreeTop, plan: &mut PathPlan) {
        // Tiny ORAM, Alg. 1, lines 3 and 4: all slots of the path are free.
        plan.clear();
        let newest_first = top.wants_newest_first();
        if newest_first {
            self.entries[..self.len].reverse();
        }
        let mut stuck = 0;
        // Alg. 1, lines 5 and 6: each block of the stash.
        for i in 0..self.len {
            let entry = self.entries[i];
            self.entries[stuck] = entry;
            // Alg. 1, lines 7 to 11: into the plan, or stuck in the stash (line 22).
            stuck += usize::from(!plan.place(entry, leaf, top));
        }
        self.len = stuck;
        if newest_first {
            self.entries[..self.len].reverse();
        }
    }

    /// Ends an eviction: counts the blocks left in the stash, and moves their bytes out of transit.
    #[inline]
    pub(crate) fn finish_eviction(&mut self, blocks: &mut BlockArena) {
        for entry in &mut self.entries[..self.len] {
            entry.place = blocks.make_permanent(entry.place);
        }
        self.occupancy.count(self.len);
    }
}

/// Inserts a path's blocks into the stash. Updates the stash's length only when dropped, so that
/// the length stays in a register until then.
pub(crate) struct Arrivals<'a> {
    entries: &'a mut [Entry],
    len: usize,
    stash_len: &'a mut usize,
}

impl Arrivals<'_> {
    /// Inserts `entry` if `real` is true. No branch depends on `real`.
    #[inline]
    pub(crate) fn insert_if(&mut self, entry: Entry, real: bool) {
        self.entries[self.len] = entry;
        self.len += usize::from(real);
    }
}

impl Drop for Arrivals<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.stash_len = self.len;
    }
}

/// Read access to the stash for code outside of the engine. Secret: no value read from it may reach
/// storage or a log.
#[derive(Clone, Copy)]
pub struct StashView<'a>(&'a Stash);

impl<'a> StashView<'a> {
    pub(crate) fn new(stash: &'a Stash) -> Self {
        Self(stash)
    }

    /// The number of blocks in the stash.
    pub fn blocks(self) -> usize {
        self.0.len()
    }

    /// The addresses of the blocks, in order of arrival.
    pub fn addresses(self) -> impl Iterator<Item = u64> {
        self.0.entries().iter().map(|entry| entry.address)
    }

    /// The addresses and leaves of the blocks, in the order of [`Self::addresses`].
    pub fn entries(self) -> impl Iterator<Item = (u64, Leaf)> {
        self.0.entries().iter().map(|entry| (entry.address, entry.leaf))
    }

    /// Statistics of the stash's occupancy so far.
    pub fn occupancy(self) -> &'a Occupancy {
        &self.0.occupancy
    }
}
