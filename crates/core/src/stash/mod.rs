//! The client's working memory: blocks that are in no bucket of the tree.
//!
//! - [`Stash`]: the fully associative stash of the papers, with a bound.
//! - [`PathPlan`], filled by PushToLeaf: which block goes where on the way back (Tiny ORAM,
//!   section III, Algorithm 1).
//! - [`TreeTop`]: the buckets nearest the root, kept on the client.
//!
//! Blocks of all three lie in one [`BlockRoom`] and stay where they are while they move between
//! them: only their names move.
//!
//! Everything here is secret.

mod block_room;
mod occupancy;
mod push_to_leaf;
mod tree_top;

pub(crate) use block_room::{BlockRoom, Place};
pub use occupancy::Occupancy;
pub(crate) use push_to_leaf::PathPlan;
pub(crate) use tree_top::TreeTop;

use crate::geometry::{Geometry, Leaf};

/// A block on the client: its name, the path it belongs to, and where its bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) address: u64,
    pub(crate) leaf: Leaf,
    pub(crate) place: Place,
}

/// The fully associative stash.
///
/// It holds blocks in the order in which they came, and PushToLeaf visits them in that order, so
/// that a run can be held against the literal reference step by step.
pub(crate) struct Stash {
    entries: Vec<Entry>,
    occupancy: Occupancy,
}

impl Stash {
    /// A stash that never holds more than `room` blocks, those of a path in transit included.
    pub(crate) fn new(room: usize) -> Self {
        Self { entries: Vec::with_capacity(room), occupancy: Occupancy::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn occupancy_mut(&mut self) -> &mut Occupancy {
        &mut self.occupancy
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    #[inline]
    pub(crate) fn insert(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    #[inline]
    pub(crate) fn find(&mut self, address: u64) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.address == address)
    }

    /// Moves as many blocks as possible, each as deep as possible, from the stash into `plan` for
    /// the path to `leaf`. The others keep their order.
    #[inline]
    pub(crate) fn push_to_leaf(&mut self, leaf: Leaf, geometry: &Geometry, plan: &mut PathPlan) {
        plan.clear();
        self.entries.retain(|entry| !plan.place(*entry, leaf, geometry));
    }

    /// Counts the blocks that an access left behind.
    #[inline]
    pub(crate) fn count_occupancy(&mut self) {
        self.occupancy.count(self.entries.len());
    }
}

/// A look at the stash from outside. Secret: nothing here may reach storage or a log.
#[derive(Clone, Copy)]
pub struct StashView<'a>(&'a Stash);

impl<'a> StashView<'a> {
    pub(crate) fn new(stash: &'a Stash) -> Self {
        Self(stash)
    }

    /// How many blocks it holds now.
    pub fn blocks(self) -> usize {
        self.0.len()
    }

    /// Their addresses, in the order in which PushToLeaf visits them.
    pub fn addresses(self) -> impl Iterator<Item = u64> {
        self.0.entries.iter().map(|entry| entry.address)
    }

    /// How full it was.
    pub fn occupancy(self) -> &'a Occupancy {
        &self.0.occupancy
    }
}
