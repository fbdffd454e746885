//! The tree: its levels, the slots of their buckets, and the arithmetic of paths.
//!
//! Level 0 is the root and level `L` holds the leaves (Tiny ORAM numbers them the other way round;
//! most other papers, and this project, count from the root). A leaf label is an `L`-bit
//! word read from its least significant bit: bit `i` says which child the path takes below level
//! `i` (Tiny ORAM, section III-A).

mod bucket_id;
mod eviction_order;

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;

pub use bucket_id::{BucketId, Leaf};
pub use eviction_order::{evictions_of_bucket, last_eviction_of_bucket, reverse_lexicographic};

use crate::error::{Error, ErrorKind};

/// The level of the leaves in the deepest tree that the engine builds, which has `2^41 - 1`
/// buckets.
pub const LEAF_LEVEL_MAX: u8 = 40;

/// The largest number of slots in one bucket.
pub const SLOTS_PER_BUCKET_MAX: u16 = 255;

/// The levels of a tree and the slots of the buckets on each.
///
/// IR-Alloc (IR-ORAM, section IV-B) is a profile with fewer slots on the middle levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// `slots[level]` for levels `0..=L`, each at least 1.
    slots: Box<[u16]>,
    /// `slots_above[level]`: the number of slots of a path on the levels `0..level`. Has one entry
    /// more than `slots`.
    slots_above: Box<[u32]>,
}

impl Geometry {
    /// A tree with `2^leaf_level` leaves and `z` slots in every bucket.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if `leaf_level` exceeds [`LEAF_LEVEL_MAX`] or `z` is not in
    /// `1..=`[`SLOTS_PER_BUCKET_MAX`].
    pub fn uniform(leaf_level: u8, z: u16) -> Result<Self, Error> {
        Self::profile(&vec![z; usize::from(leaf_level) + 1])
    }

    /// A tree with `slots[level]` slots in each bucket of `level`, from the root to the leaves.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if there are no levels, too many levels, or a level whose
    /// buckets have no slots or too many.
    pub fn profile(slots: &[u16]) -> Result<Self, Error> {
        let levels_max = usize::from(LEAF_LEVEL_MAX) + 1;
        if slots.is_empty() || slots.len() > levels_max {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!("a tree has 1 to {levels_max} levels, not {}", slots.len()),
            ));
        }
        if let Some(level) = slots.iter().position(|z| !(1..=SLOTS_PER_BUCKET_MAX).contains(z)) {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "a bucket has 1 to {SLOTS_PER_BUCKET_MAX} slots, but level {level} has {}",
                    slots[level]
                ),
            ));
        }
        let slots_above = core::iter::once(0)
            .chain(slots.iter().scan(0u32, |sum, z| {
                *sum += u32::from(*z);
                Some(*sum)
            }))
            .collect();
        Ok(Self { slots: slots.into(), slots_above })
    }

    /// `L`: the level of the leaves.
    pub fn leaf_level(&self) -> u8 {
        (self.slots.len() - 1) as u8
    }

    /// `L + 1`: the number of levels of the tree, and of buckets on a path.
    pub fn levels(&self) -> usize {
        self.slots.len()
    }

    /// `2^L`: the number of leaves, and of paths.
    pub fn leaves(&self) -> u64 {
        1 << self.leaf_level()
    }

    /// Slots in each bucket of `level`.
    #[inline]
    pub fn slots(&self, level: usize) -> usize {
        usize::from(self.slots[level])
    }

    /// Number of slots of one path on the levels above `level`. This is the index of the first slot
    /// of `level` if a path is laid out in one row.
    #[inline]
    pub fn path_slots_above(&self, level: usize) -> usize {
        self.slots_above[level] as usize
    }

    /// Number of slots of one path: `(L + 1) · Z` in a uniform tree.
    pub fn path_slots(&self) -> usize {
        self.path_slots_above(self.levels())
    }

    /// `2^(L+1) - 1`: the number of buckets of the tree.
    pub fn buckets(&self) -> u64 {
        (1 << self.levels()) - 1
    }

    /// Number of slots of the whole tree.
    pub fn tree_slots(&self) -> u64 {
        (0u64..).zip(&self.slots).map(|(level, z)| u64::from(*z) << level).sum()
    }

    /// Whether `leaf` is one of the labels of this tree.
    #[inline]
    pub fn contains_leaf(&self, leaf: Leaf) -> bool {
        leaf.0 >> self.leaf_level() == 0
    }

    /// The bucket ids of the path to `leaf`, from the root down.
    pub fn path(&self, leaf: Leaf) -> impl DoubleEndedIterator<Item = BucketId> {
        (0..=self.leaf_level()).map(move |level| BucketId::on_path(leaf, level))
    }
}

/// The smallest `L` such that `2^L` leaves hold `capacity` blocks with at most `per_leaf` blocks
/// per leaf.
///
/// `per_leaf` is a fraction `(numerator, denominator)`: a load of 2.5 blocks per leaf is `(5, 2)`.
pub(crate) fn leaf_level_for(capacity: u64, per_leaf: (u64, u64)) -> Result<u8, Error> {
    let (numerator, denominator) = per_leaf;
    (0..=LEAF_LEVEL_MAX)
        .find(|level| {
            u128::from(capacity) * u128::from(denominator) <= u128::from(numerator) << *level
        })
        .ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "{capacity} blocks need a tree of more than {LEAF_LEVEL_MAX} levels: \
                     choose larger blocks or a smaller capacity"
                ),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_uniform_tree() {
        let tree = Geometry::uniform(3, 4).unwrap();
        assert_eq!((tree.levels(), tree.leaves(), tree.buckets()), (4, 8, 15));
        assert_eq!((tree.path_slots(), tree.tree_slots()), (16, 60));
    }

    #[test]
    fn counts_of_a_profile() {
        let tree = Geometry::profile(&[1, 2, 3]).unwrap();
        assert_eq!(tree.tree_slots(), 1 + 2 * 2 + 4 * 3);
        assert_eq!(
            (0..=3).map(|level| tree.path_slots_above(level)).collect::<Vec<_>>(),
            [0, 1, 3, 6]
        );
    }

    #[test]
    fn impossible_trees_are_refused() {
        for slots in [&[][..], &[4, 0, 4], &[256], &[4; 42]] {
            assert_eq!(Geometry::profile(slots).unwrap_err().kind(), ErrorKind::InvalidConfig);
        }
        assert!(Geometry::uniform(LEAF_LEVEL_MAX, 5).is_ok());
    }

    #[test]
    fn leaf_level_is_the_smallest_that_fits() {
        assert_eq!(leaf_level_for(1, (1, 1)).unwrap(), 0);
        assert_eq!(leaf_level_for(8, (1, 1)).unwrap(), 3);
        assert_eq!(leaf_level_for(9, (1, 1)).unwrap(), 4);
        assert_eq!(leaf_level_for(20, (5, 2)).unwrap(), 3);
        assert_eq!(leaf_level_for(21, (5, 2)).unwrap(), 4);
        assert!(leaf_level_for(u64::MAX, (5, 2)).is_err());
    }
}
