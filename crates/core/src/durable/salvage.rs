//! What is left of an array whose storage is damaged.

use alloc::vec::Vec;
use core::ops::Range;

use super::Bits;
use crate::geometry::{BucketId, Geometry, Leaf};

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recoverability {
    /// It has no contents.
    Empty,
    /// It was found, and is the latest.
    Found,
    /// It was found and is authentic; but what would say whether it is the latest is damaged.
    Doubtful,
    /// It had contents, or may have had, and was not found.
    Lost,
}

/// What a look through damaged storage found, and what came in since that state. Secret; wiped when dropped.
pub struct Salvage {
    pub(super) found: Bits,
    pub(super) doubtful: Bits,
    /// Blocks that have contents, as far as it is known.
    pub(super) live: Bits,
    written_since: Bits,
    forgotten_since: Bits,
}

impl Salvage {
    /// Of an array of so many blocks: those that were found, those of them that may be older than the latest, and those that have
    /// contents.
    pub fn new(blocks: u64, found: Bits, doubtful: Bits, live: Bits) -> Self {
        let [written_since, forgotten_since] = [Bits::new(blocks), Bits::new(blocks)];
        Self { found, doubtful, live, written_since, forgotten_since }
    }

    /// The block `address` was written since.
    pub fn write(&mut self, address: u64) {
        self.written_since.insert(address);
    }

    /// The blocks of a range were forgotten since.
    pub fn forget(&mut self, range: Range<u64>) {
        self.written_since.remove_all(range.clone());
        self.forgotten_since.insert_all(range);
    }

    /// What became of a block of which the client knows whether it had contents.
    pub fn recoverability(&self, address: u64) -> Recoverability {
        match self.since(address) {
            Some(fate) => fate,
            None if !self.live.contains(address) => Recoverability::Empty,
            None if !self.found.contains(address) => Recoverability::Lost,
            None if self.doubtful.contains(address) => Recoverability::Doubtful,
            None => Recoverability::Found,
        }
    }

    /// What became of a block that was used since.
    pub(super) fn since(&self, address: u64) -> Option<Recoverability> {
        if self.written_since.contains(address) {
            Some(Recoverability::Found)
        } else if self.forgotten_since.contains(address) {
            Some(Recoverability::Empty)
        } else {
            None
        }
    }
}

/// The buckets that could not be read so far. Public.
pub(super) struct Damage {
    on_level: Vec<Bits>,
}

impl Damage {
    pub(super) fn new(geometry: &Geometry) -> Self {
        Self { on_level: (0..=geometry.leaf_level()).map(|level| Bits::new(1 << level)).collect() }
    }

    pub(super) fn add(&mut self, bucket: BucketId) {
        self.on_level[usize::from(bucket.level())].insert(bucket.index());
    }

    pub(super) fn is_on_level(&self, level: u8) -> bool {
        !self.on_level[usize::from(level)].is_untouched()
    }

    /// Whether any is on the path to `leaf`, nearer the root than `level`.
    pub(super) fn is_above(&self, level: u8, leaf: Leaf) -> bool {
        let mut above = (0..level).map(|level| BucketId::on_path(leaf, level));
        above.any(|bucket| self.on_level[usize::from(bucket.level())].contains(bucket.index()))
    }
}
