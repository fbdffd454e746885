//! Names of leaves and buckets.

use core::fmt;

/// A leaf label: the number of one of the `2^L` paths. The leaf to which a block is mapped is
/// secret until an access reads the path, and public afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leaf(pub u64);

/// The unique name of a bucket in its tree, 41 bits at most. Public.
///
/// Level `j` holds the ids `2^j - 1 ..= 2^(j+1) - 2`. The bucket of level `j` on the path to leaf
/// `l` has index `l mod 2^j`. The index is the bit-reversed path, so neighbours in id are *not*
/// neighbours in the tree, and the reverse-lexicographic order of evictions is plain counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketId(pub u64);

impl BucketId {
    /// The id of the root.
    pub const ROOT: Self = Self(0);

    /// The bucket on `level` of the path to `leaf`.
    #[inline]
    pub fn on_path(leaf: Leaf, level: u8) -> Self {
        let first = (1u64 << level) - 1;
        Self(first + (leaf.0 & first))
    }

    /// The bucket with index `index` on `level`.
    #[inline]
    pub fn new(level: u8, index: u64) -> Self {
        Self::on_path(Leaf(index), level)
    }

    /// The bucket's distance from the root. Defined for every number: ids past the last bucket of
    /// the deepest tree have levels past its last level.
    #[inline]
    pub fn level(self) -> u8 {
        self.0.saturating_add(1).ilog2() as u8
    }

    /// The bucket's index on its level: `l mod 2^level` for every leaf `l` below the bucket.
    #[inline]
    pub fn index(self) -> u64 {
        self.0.saturating_add(1) - (1 << self.level())
    }

    /// Whether the bucket is on the path to `leaf`.
    #[inline]
    pub fn is_on_path(self, leaf: Leaf) -> bool {
        Self::on_path(leaf, self.level()) == self
    }
}

impl fmt::Display for BucketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.level(), self.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_2_of_tiny_oram_path_1_of_three_levels() {
        let path: Vec<_> = (0..=3).map(|level| BucketId::on_path(Leaf(1), level)).collect();
        assert_eq!(path, [0, 2, 4, 8].map(BucketId));
    }

    #[test]
    fn level_and_index_invert_new() {
        for level in 0..12 {
            for index in 0..1 << level {
                let id = BucketId::new(level, index);
                assert_eq!((id.level(), id.index()), (level, index));
            }
        }
        let last = BucketId::new(40, (1 << 40) - 1);
        assert_eq!((last.level(), last.index(), last.0), (40, (1 << 40) - 1, (1 << 41) - 2));
    }

    #[test]
    fn ids_past_the_deepest_tree_have_levels_past_it() {
        for id in [(1 << 41) - 1, u64::MAX - 1, u64::MAX] {
            assert!(BucketId(id).level() > 40);
            assert!(BucketId(id).index() >> BucketId(id).level() == 0);
        }
    }

    #[test]
    fn ids_are_dense() {
        let ids: Vec<_> = (0..5)
            .flat_map(|level| (0..1 << level).map(move |i| BucketId::new(level, i).0))
            .collect();
        assert_eq!(ids, (0..31).collect::<Vec<_>>());
    }
}
