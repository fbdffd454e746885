//! What a store must know of a tree: sizes, all public.

use super::Part;
use crate::geometry::BucketId;

/// How many buckets a level has, and the bytes of each: a header, then whatever the scheme keeps
/// between header and slots, then the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelShape {
    /// How many buckets: those with the indices below. `2^level` in a full level, fewer where some
    /// are kept elsewhere, never more.
    pub buckets: u64,
    /// How many slots.
    pub slots: u16,
    /// Bytes of the header, which some writes replace alone.
    pub header_bytes: u64,
    /// Where the first slot starts.
    pub slots_offset: u64,
    /// Bytes of one slot.
    pub slot_bytes: u64,
    /// Bytes of the bucket, without padding between buckets.
    pub bucket_bytes: u64,
}

impl LevelShape {
    /// Buckets without slots: a head of `bytes` bytes each.
    pub fn of_heads(buckets: u64, bytes: usize) -> Self {
        let bytes = bytes as u64;
        Self {
            buckets,
            slots: 0,
            header_bytes: bytes,
            slots_offset: bytes,
            slot_bytes: 0,
            bucket_bytes: bytes,
        }
    }

    /// Where a part of a bucket starts in it, and how long it is, in bytes. None if it has no such part.
    #[inline(always)]
    pub fn part(&self, part: Part) -> Option<(u64, u64)> {
        match part {
            Part::Whole => Some((0, self.bucket_bytes)),
            Part::Header => Some((0, self.header_bytes)),
            Part::Slot(slot) if slot < self.slots => {
                Some((self.slots_offset + u64::from(slot) * self.slot_bytes, self.slot_bytes))
            }
            Part::Slot(_) => None,
        }
    }
}

/// The sizes of all buckets of a tree, a level an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeShape {
    levels: Box<[LevelShape]>,
}

impl TreeShape {
    /// A tree whose buckets on level `j` have the sizes `levels[j]`.
    pub fn new(levels: Vec<LevelShape>) -> Self {
        Self { levels: levels.into() }
    }

    /// From the root to the leaves.
    pub fn levels(&self) -> &[LevelShape] {
        &self.levels
    }

    /// `L + 1`.
    pub fn level_count(&self) -> usize {
        self.levels.len()
    }

    /// Bytes of all buckets, without padding.
    pub fn tree_bytes(&self) -> u128 {
        let level_bytes =
            |shape: &LevelShape| u128::from(shape.bucket_bytes) * u128::from(shape.buckets);
        self.levels.iter().map(level_bytes).sum()
    }

    /// Whether there is such a bucket.
    pub fn contains(&self, bucket: BucketId) -> bool {
        self.level_of(bucket).is_some()
    }

    /// The sizes of a bucket, if there is such a bucket.
    pub fn level_of(&self, bucket: BucketId) -> Option<&LevelShape> {
        let level = self.levels.get(usize::from(bucket.level()));
        level.filter(|level| bucket.index() < level.buckets)
    }

    /// Bytes of one bucket of every level that has any, without padding: of one path, in a tree.
    pub fn path_bytes(&self) -> u64 {
        let present = self.levels.iter().filter(|shape| shape.buckets > 0);
        present.map(|shape| shape.bucket_bytes).sum()
    }
}
