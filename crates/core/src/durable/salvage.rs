//! The results of recovering an array whose storage is damaged.

use alloc::vec::Vec;
use core::ops::Range;

use super::SparseAddressSet;
use crate::geometry::{BucketId, Geometry, Leaf};

/// The recoverability of a block from damaged storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recoverability {
    /// The block has no contents.
    Empty,
    /// A copy with the latest contents was found.
    Found,
    /// An authentic copy was found, but the damage hides whether it is the latest.
    Doubtful,
    /// The block has contents, or might have, and no copy was found.
    Lost,
}

/// The blocks found in damaged storage, and the blocks written or forgotten after the state that
/// was restored. Secret; wiped when dropped.
pub struct Salvage {
    pub(super) found: SparseAddressSet,
    pub(super) doubtful: SparseAddressSet,
    /// Blocks known to have contents.
    pub(super) live: SparseAddressSet,
    written_since: SparseAddressSet,
    forgotten_since: SparseAddressSet,
}

impl Salvage {
    /// The salvage of an array of `blocks` blocks. `found` are the blocks that were found,
    /// `doubtful` the found blocks that may be out of date, `live` the blocks that have contents.
    pub fn new(
        blocks: u64,
        found: SparseAddressSet,
        doubtful: SparseAddressSet,
        live: SparseAddressSet,
    ) -> Self {
        let [written_since, forgotten_since] =
            [SparseAddressSet::new(blocks), SparseAddressSet::new(blocks)];
        Self { found, doubtful, live, written_since, forgotten_since }
    }

    /// Records that a block was written after the restored state.
    pub fn write(&mut self, address: u64) {
        self.written_since.insert(address);
    }

    /// Records that the blocks of a range were forgotten after the restored state.
    pub fn forget(&mut self, range: Range<u64>) {
        self.written_since.remove_all(range.clone());
        self.forgotten_since.insert_all(range);
    }

    /// The recoverability of a block, in a scheme whose client knows which blocks have contents.
    pub fn recoverability(&self, address: u64) -> Recoverability {
        match self.after_state(address) {
            Some(recoverability) => recoverability,
            None if !self.live.contains(address) => Recoverability::Empty,
            None if !self.found.contains(address) => Recoverability::Lost,
            None if self.doubtful.contains(address) => Recoverability::Doubtful,
            None => Recoverability::Found,
        }
    }

    /// The recoverability of a block that was written or forgotten after the restored state; `None`
    /// for other blocks.
    pub(super) fn after_state(&self, address: u64) -> Option<Recoverability> {
        if self.written_since.contains(address) {
            Some(Recoverability::Found)
        } else if self.forgotten_since.contains(address) {
            Some(Recoverability::Empty)
        } else {
            None
        }
    }
}

/// The buckets found unreadable so far. Public.
pub(super) struct Damage {
    on_level: Vec<SparseAddressSet>,
}

impl Damage {
    pub(super) fn new(geometry: &Geometry) -> Self {
        Self {
            on_level: (0..=geometry.leaf_level())
                .map(|level| SparseAddressSet::new(1 << level))
                .collect(),
        }
    }

    pub(super) fn add(&mut self, bucket: BucketId) {
        self.on_level[usize::from(bucket.level())].insert(bucket.index());
    }

    pub(super) fn is_on_level(&self, level: u8) -> bool {
        !self.on_level[usize::from(level)].is_untouched()
    }

    /// Whether a damaged bucket is on the path to `leaf`, nearer to the root than `level`.
    pub(super) fn is_above(&self, level: u8, leaf: Leaf) -> bool {
        let mut above = (0..level).map(|level| BucketId::on_path(leaf, level));
        above.any(|bucket| self.on_level[usize::from(bucket.level())].contains(bucket.index()))
    }
}
