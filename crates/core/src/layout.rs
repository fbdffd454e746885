//! The location of a bucket in storage: three bijections from buckets to byte ranges.
//!
//! | layout | neighbours in storage | made for |
//! |---|---|---|
//! | [`LayoutKind::Heap`] | siblings | comparison: the textbook layout |
//! | [`LayoutKind::Subtree`] | a subtree that fills a DRAM row or a page | memory and disks |
//! | [`LayoutKind::Striped`] | buckets of neighbouring leaf labels on a level | ranges (rORAM) |
//!
//! Subtrees are from Ren et al., ISCA'13; see also Tiny ORAM, section V-B.
//!
//! All three layouts are one formula with different constants. A layout is public: it depends only
//! on the shape of the tree, the kind of layout and the alignment.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::geometry::{BucketId, LEAF_LEVEL_MAX};
use crate::pieces::{LevelShape, TreeShape};

/// The order of the buckets in storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutKind {
    /// Stores level after level, each from the leftmost bucket to the rightmost.
    Heap,
    /// Stores level after level, each in the order of bucket indices, which are bit-reversed: the
    /// paths `l, l+1, …` occupy consecutive buckets on each level.
    Striped,
    /// Stores subtrees with as many levels as fit into `unit_bytes` (at least one), each starting
    /// at a multiple of `unit_bytes`. So a path touches few rows or pages.
    Subtree {
        /// Size in bytes of the row, page or stripe that a subtree must fit.
        unit_bytes: u64,
    },
}

/// The location of every bucket of one tree.
#[derive(Clone, Debug)]
pub struct Layout {
    levels: Box<[LevelPlace]>,
    bytes: u64,
}

/// The location of the buckets of one level: subtrees are `subtree_stride` bytes apart, and within
/// a subtree the buckets of this level are `bucket_stride` bytes apart.
#[derive(Clone, Debug)]
pub(crate) struct LevelPlace {
    level: u8,
    /// The level of the roots of the subtrees.
    root_level: u8,
    /// Number of bits of a bucket's index inside its subtree that are reversed: all or none.
    reversed_bits: u8,
    /// Number of buckets on the level.
    buckets: u64,
    base: u64,
    subtree_stride: u64,
    bucket_stride: u64,
}

impl Layout {
    /// Lays out a tree of `shape`. Each bucket starts at a multiple of `align_bytes`. With
    /// [`LayoutKind::Subtree`], this holds only if `unit_bytes` is a multiple of `align_bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if `align_bytes` or `unit_bytes` is zero, a level has more
    /// buckets than a binary tree has there, the tree has more than 42 levels, or it takes 2^63
    /// bytes or more.
    pub fn new(shape: &TreeShape, kind: LayoutKind, align_bytes: u64) -> Result<Self, Error> {
        let levels = LevelSize::of(shape, align_bytes)?;
        match kind {
            LayoutKind::Heap => place_levels(&levels, true),
            LayoutKind::Striped => place_levels(&levels, false),
            LayoutKind::Subtree { unit_bytes: 0 } => {
                Err(Error::new(ErrorKind::InvalidConfig, "a subtree cannot be packed to 0 bytes"))
            }
            LayoutKind::Subtree { unit_bytes } => place_subtrees(&levels, unit_bytes),
        }
    }

    /// Bytes of the whole tree, including padding.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The offset in bytes at which `bucket` starts.
    #[inline]
    pub fn offset(&self, bucket: BucketId) -> u64 {
        self.level(bucket.level()).offset(bucket.index())
    }

    /// The locations of the buckets of one level.
    pub(crate) fn level(&self, level: u8) -> &LevelPlace {
        &self.levels[usize::from(level)]
    }

    /// The bucket that starts at `offset`, if any: the inverse of [`Self::offset`].
    pub fn bucket_at(&self, offset: u64) -> Option<BucketId> {
        self.levels.iter().find_map(|level| level.bucket_at(offset))
    }
}

/// The number of buckets of one level, and the size of a bucket.
#[derive(Clone, Copy)]
struct LevelSize {
    level: u8,
    buckets: u64,
    /// Bytes from one bucket to the next, including padding.
    stride: u64,
}

impl LevelSize {
    fn of(shape: &TreeShape, align_bytes: u64) -> Result<Vec<Self>, Error> {
        let invalid = |message: String| Error::new(ErrorKind::InvalidConfig, message);
        if align_bytes == 0 {
            return Err(invalid("buckets cannot be aligned to 0 bytes".into()));
        }
        let size = |(level, shape): (u8, &LevelShape)| {
            if level > LEAF_LEVEL_MAX + 1 || shape.buckets > 1 << level {
                let message = format!("level {level} cannot have {} buckets", shape.buckets);
                return Err(invalid(message));
            }
            let stride = shape.bucket_bytes.max(1).checked_next_multiple_of(align_bytes);
            Ok(Self { level, buckets: shape.buckets, stride: stride.ok_or_else(too_large)? })
        };
        (0..).zip(shape.levels()).map(size).collect()
    }
}

impl LevelPlace {
    /// The byte offset of the bucket with `index` on this level.
    #[inline]
    pub(crate) fn offset(&self, index: u64) -> u64 {
        let subtree = index & ((1 << self.root_level) - 1);
        let within = index >> self.root_level;
        self.base + subtree * self.subtree_stride + self.order(within) * self.bucket_stride
    }

    fn bucket_at(&self, offset: u64) -> Option<BucketId> {
        let relative = offset.checked_sub(self.base)?;
        let (subtree, rest) = (relative / self.subtree_stride, relative % self.subtree_stride);
        let (within, rest) = (rest / self.bucket_stride, rest % self.bucket_stride);
        let is_bucket = subtree >> self.root_level == 0
            && within >> (self.level - self.root_level) == 0
            && rest == 0;
        let index = is_bucket.then(|| subtree | self.order(within) << self.root_level)?;
        (index < self.buckets).then(|| BucketId::new(self.level, index))
    }

    /// The position of index `within` in its subtree: the index itself, or, if the order is from
    /// left to right, the index with its bits reversed. An involution.
    #[inline]
    fn order(&self, within: u64) -> u64 {
        match self.reversed_bits {
            0 => within,
            bits => within.reverse_bits() >> (64 - bits),
        }
    }
}

/// Lays out level after level. If `left_to_right` is set, a level that is not full has gaps.
fn place_levels(sizes: &[LevelSize], left_to_right: bool) -> Result<Layout, Error> {
    let mut bytes = 0;
    let mut levels = Vec::with_capacity(sizes.len());
    for &LevelSize { level, buckets, stride } in sizes {
        let places = if left_to_right && buckets > 0 { 1 << level } else { buckets };
        let level_bytes = checked_bytes(stride, places)?;
        levels.push(LevelPlace {
            level,
            root_level: 0,
            reversed_bits: if left_to_right { level } else { 0 },
            buckets,
            base: bytes,
            subtree_stride: level_bytes.max(1),
            bucket_stride: stride,
        });
        bytes = checked_sum(bytes, level_bytes)?;
    }
    Ok(Layout { levels: levels.into(), bytes })
}

/// Lays out subtrees, each with as many levels as fit into `unit_bytes`. Levels that are not full
/// have gaps.
fn place_subtrees(sizes: &[LevelSize], unit_bytes: u64) -> Result<Layout, Error> {
    let mut bytes = 0;
    let mut levels = Vec::with_capacity(sizes.len());
    while levels.len() < sizes.len() {
        let root_level = levels.len() as u8;
        let mut subtree_bytes = 0;
        for (depth, size) in sizes[levels.len()..].iter().enumerate() {
            let with_level = checked_sum(subtree_bytes, checked_bytes(size.stride, 1 << depth)?)?;
            if depth > 0 && with_level > unit_bytes {
                break;
            }
            levels.push(LevelPlace {
                level: size.level,
                root_level,
                reversed_bits: 0,
                buckets: size.buckets,
                base: bytes + subtree_bytes,
                subtree_stride: 0,
                bucket_stride: size.stride,
            });
            subtree_bytes = with_level;
        }
        let subtree_stride =
            subtree_bytes.checked_next_multiple_of(unit_bytes).ok_or_else(too_large)?;
        for level in &mut levels[usize::from(root_level)..] {
            level.subtree_stride = subtree_stride;
        }
        bytes = checked_sum(bytes, checked_bytes(subtree_stride, 1 << root_level)?)?;
    }
    Ok(Layout { levels: levels.into(), bytes })
}

fn checked_bytes(stride: u64, count: u64) -> Result<u64, Error> {
    stride.checked_mul(count).filter(|bytes| *bytes <= i64::MAX as u64).ok_or_else(too_large)
}

fn checked_sum(a: u64, b: u64) -> Result<u64, Error> {
    a.checked_add(b).filter(|bytes| *bytes <= i64::MAX as u64).ok_or_else(too_large)
}

fn too_large() -> Error {
    Error::new(
        ErrorKind::InvalidConfig,
        "the tree is larger than 2^63 bytes: use a smaller capacity or block size",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(bucket_bytes: &[u64]) -> TreeShape {
        let levels = bucket_bytes
            .iter()
            .zip(0u8..)
            .map(|(&bytes, level)| LevelShape {
                buckets: 1 << level,
                slots: 1,
                header_bytes: 1,
                slots_offset: 1,
                slot_bytes: bytes - 1,
                bucket_bytes: bytes,
            })
            .collect();
        TreeShape::new(levels)
    }

    fn any_kind() -> impl Strategy<Value = LayoutKind> {
        prop_oneof![
            Just(LayoutKind::Heap),
            Just(LayoutKind::Striped),
            (1u64..20_000).prop_map(|unit_bytes| LayoutKind::Subtree { unit_bytes }),
        ]
    }

    proptest! {
        #[test]
        fn buckets_never_overlap_and_the_inverse_finds_them(
            kind in any_kind(),
            bucket_bytes in prop::collection::vec(2u64..500, 1..10),
            align in 1u64..100,
        ) {
            let shape = shape(&bucket_bytes);
            let layout = Layout::new(&shape, kind, align).unwrap();
            let mut ranges = Vec::new();
            for id in 0..(1u64 << bucket_bytes.len()) - 1 {
                let bucket = BucketId(id);
                let start = layout.offset(bucket);
                prop_assert_eq!(layout.bucket_at(start), Some(bucket));
                if !matches!(kind, LayoutKind::Subtree { .. }) {
                    prop_assert_eq!(start % align, 0);
                }
                ranges.push((start, start + bucket_bytes[usize::from(bucket.level())]));
            }
            ranges.sort_unstable();
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].0, "{:?} overlaps {:?}", pair[0], pair[1]);
            }
            prop_assert!(ranges.last().unwrap().1 <= layout.bytes());
        }

        #[test]
        fn a_level_that_is_not_full_has_only_its_own_buckets(
            kind in any_kind(),
            parts in prop::collection::vec(0u64..=100, 1..9),
        ) {
            let mut levels = shape(&vec![50; parts.len()]).levels().to_vec();
            for (level, part) in levels.iter_mut().zip(&parts) {
                level.buckets = level.buckets * part / 100;
            }
            let shape = TreeShape::new(levels);
            let layout = Layout::new(&shape, kind, 8).unwrap();
            let found = (0..layout.bytes()).filter_map(|offset| layout.bucket_at(offset));
            let found: std::collections::HashSet<_> = found.collect();
            let there = (0..(1u64 << parts.len()) - 1)
                .map(BucketId)
                .filter(|id| shape.contains(*id));
            prop_assert_eq!(found, there.collect());
        }

        #[test]
        fn offsets_between_buckets_belong_to_no_bucket(kind in any_kind(), offset in 0u64..10_000) {
            let layout = Layout::new(&shape(&[40; 6]), kind, 64).unwrap();
            match layout.bucket_at(offset) {
                Some(bucket) => prop_assert_eq!(layout.offset(bucket), offset),
                None => prop_assert!((0..63).all(|id| layout.offset(BucketId(id)) != offset)),
            }
        }
    }

    #[test]
    fn heap_runs_from_left_to_right() {
        let layout = Layout::new(&shape(&[10; 3]), LayoutKind::Heap, 1).unwrap();
        // Leaves left to right are 0b00, 0b10, 0b01, 0b11 when read from the least significant bit.
        let leaves = [0, 2, 1, 3].map(|index| layout.offset(BucketId::new(2, index)));
        assert_eq!(leaves, [30, 40, 50, 60]);
    }

    #[test]
    fn striped_puts_neighbouring_leaves_side_by_side() {
        let layout = Layout::new(&shape(&[10; 3]), LayoutKind::Striped, 1).unwrap();
        let leaves = [0, 1, 2, 3].map(|index| layout.offset(BucketId::new(2, index)));
        assert_eq!(leaves, [30, 40, 50, 60]);
    }

    #[test]
    fn a_path_touches_one_row_for_each_packed_subtree() {
        // 31 buckets of 256 bytes fill an 8 KiB row: 5 levels, as in Tiny ORAM's prototype.
        const ROW: u64 = 8192;
        let layout =
            Layout::new(&shape(&[256; 20]), LayoutKind::Subtree { unit_bytes: ROW }, 64).unwrap();
        for leaf in [0, 1, 77_777, (1 << 19) - 1] {
            let mut rows: Vec<_> = (0..20)
                .map(|level| {
                    layout.offset(BucketId::on_path(crate::geometry::Leaf(leaf), level)) / ROW
                })
                .collect();
            rows.dedup();
            assert_eq!(rows.len(), 4);
        }
    }

    #[test]
    fn trees_past_the_address_space_are_refused() {
        let large = shape(&[1 << 26; 41]);
        for kind in
            [LayoutKind::Heap, LayoutKind::Striped, LayoutKind::Subtree { unit_bytes: 4096 }]
        {
            let error = Layout::new(&large, kind, 64).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        }
    }
}
