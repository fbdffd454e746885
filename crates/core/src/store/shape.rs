//! What a store must know of a tree: sizes, all public.

/// The bytes of a bucket: a header, then whatever the scheme keeps between header and slots, then
/// the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelShape {
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
        (0..).zip(&self.levels).map(|(level, shape)| u128::from(shape.bucket_bytes) << level).sum()
    }

    /// Bytes of all buckets of one path, without padding.
    pub fn path_bytes(&self) -> u64 {
        self.levels.iter().map(|shape| shape.bucket_bytes).sum()
    }
}
