//! The sizes of a tree's levels and buckets, for stores. All sizes are public.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Part, Piece, Span};
use crate::geometry::BucketId;

/// The number of buckets on a level, and the sizes of a bucket's parts. A bucket consists of a
/// header, optional data of the scheme, and the slots, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelShape {
    /// Number of buckets on the level, with indices from 0: `2^level`, or fewer if storage does not
    /// hold all of them.
    pub buckets: u64,
    /// Number of slots of a bucket.
    pub slots: u16,
    /// Bytes of the header, which can be written without the rest of the bucket.
    pub header_bytes: u64,
    /// Offset of the first slot in the bucket.
    pub slots_offset: u64,
    /// Bytes of one slot.
    pub slot_bytes: u64,
    /// Bytes of the bucket, without padding between buckets.
    pub bucket_bytes: u64,
}

impl LevelShape {
    /// The shape of a level whose buckets have no slots, only a head of `bytes` bytes.
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

    /// The offset and length in bytes of a part of a bucket; `None` if the bucket has no such part.
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

/// The sizes of the buckets on each level of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeShape {
    levels: Box<[LevelShape]>,
}

impl TreeShape {
    /// A tree whose buckets on level `j` have the sizes `levels[j]`.
    pub fn new(levels: Vec<LevelShape>) -> Self {
        Self { levels: levels.into() }
    }

    /// The levels, from the root to the leaves.
    pub fn levels(&self) -> &[LevelShape] {
        &self.levels
    }

    /// `L + 1`: the number of levels.
    pub fn level_count(&self) -> usize {
        self.levels.len()
    }

    /// Bytes of all buckets, without padding.
    pub fn tree_bytes(&self) -> u128 {
        let level_bytes =
            |shape: &LevelShape| u128::from(shape.bucket_bytes) * u128::from(shape.buckets);
        self.levels.iter().map(level_bytes).sum()
    }

    /// Whether the tree has the bucket `bucket`.
    pub fn contains(&self, bucket: BucketId) -> bool {
        self.level_of(bucket).is_some()
    }

    /// The sizes of a bucket, if the tree has it.
    pub fn level_of(&self, bucket: BucketId) -> Option<&LevelShape> {
        let level = self.levels.get(usize::from(bucket.level()));
        level.filter(|level| bucket.index() < level.buckets)
    }

    /// The span of `piece` in its bucket, if this tree has such a piece. Ignores `piece.tree`.
    pub fn span(&self, piece: &Piece) -> Option<Span> {
        let (start, bytes) = self.level_of(piece.bucket)?.part(piece.part)?;
        Some(Span { start: start.try_into().ok()?, bytes: bytes.try_into().ok()? })
    }

    /// Bytes of a path without padding: the sum over all levels that have buckets in this tree.
    pub fn path_bytes(&self) -> u64 {
        let present = self.levels.iter().filter(|shape| shape.buckets > 0);
        present.map(|shape| shape.bucket_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::TreeId;

    #[test]
    fn pieces_lie_within_their_buckets_or_do_not_exist() {
        let level = |buckets| LevelShape {
            buckets,
            slots: 3,
            header_bytes: 24,
            slots_offset: 40,
            slot_bytes: 100,
            bucket_bytes: 340,
        };
        let shape = TreeShape::new(vec![level(1), level(1)]);
        let span = |level, index, part| {
            let piece = Piece { tree: TreeId(7), bucket: BucketId::new(level, index), part };
            shape.span(&piece).map(Span::range)
        };
        assert_eq!(span(0, 0, Part::Whole), Some(0..340));
        assert_eq!(span(1, 0, Part::Header), Some(0..24));
        assert_eq!(span(1, 0, Part::Slot(2)), Some(240..340));
        assert_eq!(span(1, 0, Part::Slot(3)), None, "a slot too many");
        assert_eq!(span(1, 1, Part::Whole), None, "a bucket that is kept elsewhere");
        assert_eq!(span(2, 0, Part::Whole), None, "a level too many");
    }
}
