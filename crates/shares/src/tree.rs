//! The tree of buckets (section 3.1 of the paper), and the buckets of each eviction (Figure 2).
//!
//! Leaves and buckets are numbered as in `core`: bit *j* of a leaf's label is the direction of its
//! path below level *j*. So the paper's reverse-lexicographic order of evictions is plain counting.
//! All of this is public.

use oblivio_core::geometry::reverse_lexicographic;
use oblivio_core::{BucketId, Leaf};

/// The maximum height of a tree, which is its number of levels below the root.
pub const HEIGHT_MAX: u8 = 30;

/// The maximum number of slots of a bucket.
pub const SLOTS_MAX: u16 = 4096;

/// The shape of a tree, and the number of accesses between evictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    height: u8,
    slots: u16,
    accesses: u16,
}

/// The slots of a bucket and the eviction period. They determine the probability that a bucket
/// overflows (Lemma 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The number of slots of a bucket: the paper's *Z*.
    pub slots: u16,
    /// The number of accesses between evictions: the paper's *A*.
    pub accesses: u16,
}

impl Preset {
    /// Long buckets, as in the paper, which overflow with a probability below 2^-80.
    pub const LARGE: Self = Self { slots: 333, accesses: 176 };
    /// Short buckets, which also overflow with a probability below 2^-80. An eviction sends and
    /// multiplies a twentieth as much as with [`Self::LARGE`], and is due eleven times as often.
    pub const SMALL: Self = Self { slots: 74, accesses: 16 };
    /// The paper's parameters, *Z* = *A* = 333. Only for comparison: if every access is to another
    /// block, most evictions overflow a bucket.
    pub const PAPER: Self = Self { slots: 333, accesses: 333 };
    /// The parameters of the authors' implementation. Only for comparison: one eviction in several
    /// hundred overflows a bucket.
    pub const PROTOTYPE: Self = Self { slots: 333, accesses: 280 };
    /// The parameters of the authors' later work. Only for comparison: by our bound, the
    /// probability that an eviction overflows a bucket is only below 2^-21.
    pub const PROTOTYPE_SMALL: Self = Self { slots: 74, accesses: 37 };

    /// The base-2 logarithm of a bound on the probability that an eviction overflows a bucket.
    ///
    /// During an eviction, a destination at level *h* holds blocks from two evictions. As the
    /// sibling of an earlier eviction, it received its half of the source's blocks. As the
    /// destination, it receives its half of the blocks that have arrived in the source since. Each
    /// of *A* · 2^*h* accesses mapped a block to it with probability 2^-*h*, so it holds *A* blocks
    /// on average. This is Chernoff's bound for that average. Lemma 4.1 assumes half the average,
    /// which is right [between evictions](Self::lemma_log2).
    pub fn overflow_log2(self) -> f64 {
        let (more, mean) = (f64::from(self.slots) + 1.0, f64::from(self.accesses));
        (more - mean + more * (mean / more).ln()) * std::f64::consts::LOG2_E
    }

    /// The base-2 logarithm of Lemma 4.1's bound on the probability that a bucket overflows. The
    /// bound holds for buckets between evictions: siblings, and leaves. See `overflow_log2` for
    /// destinations during an eviction.
    pub fn lemma_log2(self) -> f64 {
        let (slots, accesses) = (f64::from(self.slots), f64::from(self.accesses));
        -(2.0 * slots - accesses).powi(2) / (6.0 * accesses) * std::f64::consts::LOG2_E
    }
}

/// The error for an unsupported shape of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidTree(&'static str);

impl Tree {
    /// Creates the shape of a tree with `height` levels below the root: the paper's *H*.
    ///
    /// # Errors
    /// If the number of levels or slots is 0 or too large, or the eviction period is 0 or exceeds
    /// the slots of the root.
    pub fn new(height: u8, preset: Preset) -> Result<Self, InvalidTree> {
        let Preset { slots, accesses } = preset;
        if !(1..=HEIGHT_MAX).contains(&height) {
            return Err(InvalidTree("a tree has 1 to 30 levels below the root"));
        }
        if !(1..=SLOTS_MAX).contains(&slots) {
            return Err(InvalidTree("a bucket has 1 to 4096 slots"));
        }
        if !(1..=slots).contains(&accesses) {
            return Err(InvalidTree(
                "the eviction period must be at least one access and at most the slots of a bucket",
            ));
        }
        Ok(Self { height, slots, accesses })
    }

    /// Creates the lowest tree that holds `blocks` blocks.
    ///
    /// # Errors
    /// If the tree would have more than [`HEIGHT_MAX`] levels below the root, or the preset is
    /// invalid.
    pub fn for_blocks(blocks: u64, preset: Preset) -> Result<Self, InvalidTree> {
        let heights = 1..=HEIGHT_MAX;
        let trees = heights.map(|height| Self::new(height, preset));
        let fits = |tree: &Result<Self, InvalidTree>| {
            tree.is_err() || tree.is_ok_and(|it| it.blocks_max() >= blocks)
        };
        trees.into_iter().find(fits).unwrap_or(Err(InvalidTree(
            "the blocks need a tree of more than 30 levels below the root",
        )))
    }

    /// The maximum number of blocks: *A* · 2^*H*, so that a leaf holds *A* blocks on average.
    ///
    /// Section 3.1 allows half as many blocks, so that a leaf holds *A* / 2 on average; Lemma 4.1
    /// assumes this average for all buckets. But destinations hold *A* on average in any case
    /// ([`Preset::overflow_log2`]). Buckets that are long enough for destinations are long enough
    /// for leaves with *A* blocks.
    pub fn blocks_max(self) -> u64 {
        u64::from(self.accesses) << self.height
    }

    /// The number of levels below the root: the paper's *H*.
    pub fn height(self) -> u8 {
        self.height
    }

    /// The number of slots of a bucket: the paper's *Z*.
    pub fn slots(self) -> usize {
        self.slots.into()
    }

    /// The number of accesses between evictions: the paper's *A*.
    pub fn accesses(self) -> usize {
        self.accesses.into()
    }

    /// The number of slots of a path.
    pub fn path_slots(self) -> usize {
        self.slots() * (usize::from(self.height) + 1)
    }

    /// The number of leaves.
    pub fn leaves(self) -> u64 {
        1 << self.height
    }

    /// The buckets of the path to a leaf, the root first.
    pub fn path(self, leaf: Leaf) -> impl Iterator<Item = BucketId> {
        (0..=self.height).map(move |level| BucketId::on_path(leaf, level))
    }

    /// The leaf whose path eviction `number` evicts, counted from 0: equation (6).
    pub fn evicted(self, number: u64) -> Leaf {
        reverse_lexicographic(number, self.height)
    }

    /// The leaf that has the same parent as `leaf`.
    pub fn sibling_leaf(self, leaf: Leaf) -> Leaf {
        Leaf(leaf.0 ^ 1 << (self.height - 1))
    }

    /// Whether a bucket below the root may hold blocks after `evictions` evictions. A leaf may hold
    /// blocks after the first eviction of a path through its parent. Any other bucket may hold
    /// blocks if the last path that was evicted through its parent went on to its sibling.
    pub fn is_in_use(self, bucket: BucketId, evictions: u64) -> bool {
        let (level, index) = (bucket.level(), bucket.index());
        let above = (1u64 << (level - 1)) - 1;
        let Some(last) = evictions.checked_sub(1).filter(|last| *last >= index & above) else {
            return false;
        };
        let through_the_one_above = last - (last.wrapping_sub(index) & above);
        level == self.height || through_the_one_above & ((1 << level) - 1) != index
    }

    /// All buckets, beginning with the root.
    pub fn buckets(self) -> impl Iterator<Item = BucketId> {
        let levels = 0..=self.height;
        levels.flat_map(|level| (0..1 << level).map(move |at| BucketId::new(level, at)))
    }

    /// The steps of eviction `number`, from the root down, each with its buckets.
    pub fn triplets(self, number: u64) -> impl Iterator<Item = Triplet> {
        // Subroutine 3, step 1: the digits of the counter, reversed.
        let leaf = self.evicted(number);
        // Subroutine 3, steps 2 and 18: the buckets of this path, from the root down.
        (0..self.height).map(move |level| Triplet {
            source: BucketId::on_path(leaf, level),
            destination: BucketId::on_path(leaf, level + 1),
            sibling: BucketId::on_path(Leaf(leaf.0 ^ 1 << level), level + 1),
            is_last: level + 1 == self.height,
        })
    }
}

/// The buckets of one step of an eviction: a bucket and its children. Each block of the source
/// moves to the child on the block's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triplet {
    /// The bucket that the step empties.
    pub source: BucketId,
    /// The child on the evicted path. It may already hold blocks.
    pub destination: BucketId,
    /// The other child. Unless it is a leaf, it is empty before the step, and receives a copy of
    /// the source.
    pub sibling: BucketId,
    /// Whether the children are leaves.
    pub is_last: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(height: u8) -> Tree {
        Tree::new(height, Preset::SMALL).unwrap()
    }

    #[test]
    fn presets_have_the_documented_overflow_bounds() {
        for preset in [Preset::LARGE, Preset::SMALL] {
            let one_more = Preset { accesses: preset.accesses + 1, ..preset };
            assert!(preset.overflow_log2() <= -80.0 && one_more.overflow_log2() > -80.0);
        }
        for (preset, lemma, bound) in [
            (Preset::PAPER, -80.0, -0.0),
            (Preset::PROTOTYPE, -127.9, -7.1),
            (Preset::PROTOTYPE_SMALL, -80.1, -21.6),
        ] {
            let found = (preset.lemma_log2(), preset.overflow_log2());
            assert!((found.0 - lemma).abs() < 0.1 && (found.1 - bound).abs() < 0.1, "{found:?}");
        }
    }

    #[test]
    fn trees_are_as_high_as_their_blocks_need() {
        // 40 GB of 128 KiB blocks: 2^15 · 10 blocks.
        for (blocks, height) in [(1, 1), (666, 1), (667, 2), (327_680, 10), (1 << 25, 17)] {
            let tree = Tree::for_blocks(blocks, Preset::PAPER).unwrap();
            assert_eq!(tree.height(), height, "{blocks}");
            assert!(tree.blocks_max() >= blocks);
        }
        assert!(Tree::for_blocks(u64::MAX, Preset::PAPER).is_err());
        let preset = |slots, accesses| Tree::new(3, Preset { slots, accesses });
        assert!(preset(0, 0).is_err() && preset(4, 5).is_err() && preset(5000, 1).is_err());
        assert!(Tree::new(0, Preset::SMALL).is_err() && Tree::new(31, Preset::SMALL).is_err());
        assert_eq!(preset(5, 4).map(Tree::path_slots), Ok(20));
    }

    #[test]
    fn a_triplet_is_a_bucket_on_the_path_and_its_children() {
        let tree = small(3);
        for number in 0..20 {
            let leaf = tree.evicted(number);
            let triplets: Vec<_> = tree.triplets(number).collect();
            assert_eq!(triplets.len(), 3);
            for (level, triplet) in triplets.iter().enumerate() {
                assert!(triplet.source.is_on_path(leaf) && triplet.destination.is_on_path(leaf));
                assert!(!triplet.sibling.is_on_path(leaf));
                assert_eq!(usize::from(triplet.source.level()), level);
                let children = [triplet.destination, triplet.sibling];
                for below in (0..8).map(Leaf) {
                    let through = children.iter().filter(|child| child.is_on_path(below)).count();
                    assert_eq!(through, usize::from(triplet.source.is_on_path(below)));
                }
                assert_eq!(triplet.is_last, level == 2);
            }
        }
    }

    /// Checks the paper's statement that "non-leaf sibling buckets are guaranteed to be empty".
    /// Before such a bucket is a sibling again, all blocks have left it.
    #[test]
    fn a_sibling_that_is_no_leaf_has_been_emptied_before() {
        let tree = small(4);
        let mut may_hold = vec![false; (2 << tree.height()) - 1];
        for number in 0..100 {
            for Triplet { source, destination, sibling, is_last } in tree.triplets(number) {
                assert!(is_last || !may_hold[sibling.0 as usize], "eviction {number}");
                may_hold[source.0 as usize] = false;
                may_hold[destination.0 as usize] = true;
                may_hold[sibling.0 as usize] = true;
            }
        }
    }
}
