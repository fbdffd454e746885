//! The tree of buckets (section 3.1 of the paper), and which of them take part in an eviction (Figure 2).
//!
//! Leaves and buckets are named as in `core`: bit *j* of a leaf's label says where its path goes below level *j*, so the paper's
//! reverse-lexicographic order of evictions is plain counting. All of it is public.

use oblivio_core::geometry::reverse_lexicographic;
use oblivio_core::{BucketId, Leaf};

/// The most levels below the root.
pub const HEIGHT_MAX: u8 = 30;

/// The most slots of a bucket.
pub const SLOTS_MAX: u16 = 4096;

/// The shape of the tree, and how often it is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    height: u8,
    slots: u16,
    accesses: u16,
}

/// How many slots and how many accesses for an eviction: what decides how likely it is that a bucket overflows (Lemma 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The paper's *Z*.
    pub slots: u16,
    /// The paper's *A*.
    pub accesses: u16,
}

impl Preset {
    /// Buckets as long as the paper's, which overflow with a probability below 2^-80.
    pub const LARGE: Self = Self { slots: 333, accesses: 176 };
    /// Short buckets that overflow as seldom. An eviction sends and multiplies a twentieth, and comes eleven times as often.
    pub const SMALL: Self = Self { slots: 74, accesses: 16 };
    /// The paper's: *Z* = *A* = 333. Most evictions overflow a bucket, if other blocks are accessed all the time: for comparison alone.
    pub const PAPER: Self = Self { slots: 333, accesses: 333 };
    /// What the authors' implementation is set to. It overflows in one eviction of some hundreds: for comparison alone.
    pub const PROTOTYPE: Self = Self { slots: 333, accesses: 280 };
    /// Of the authors' later work. Its probability is bounded by 2^-21 alone: for comparison.
    pub const PROTOTYPE_SMALL: Self = Self { slots: 74, accesses: 37 };

    /// A bound on the probability that an eviction overflows a bucket, as a power of two.
    ///
    /// In the middle of an eviction, a destination holds what two evictions have brought: as a sibling it got half of what was in its
    /// source, and now it gets the other half of what has come there since. Each of *A* · 2^*h* accesses may have mapped a block to it, with a
    /// probability of 2^-*h*: *A* blocks on average, and this is Chernoff's bound for that. Lemma 4.1 takes half of it for the average, which is right
    /// [between evictions](Self::lemma_log2).
    pub fn overflow_log2(self) -> f64 {
        let (more, mean) = (f64::from(self.slots) + 1.0, f64::from(self.accesses));
        (more - mean + more * (mean / more).ln()) * std::f64::consts::LOG2_E
    }

    /// The bound of Lemma 4.1, as a power of two. It holds of siblings, which stay as they are after an eviction, and of leaves.
    pub fn lemma_log2(self) -> f64 {
        let (slots, accesses) = (f64::from(self.slots), f64::from(self.accesses));
        -(2.0 * slots - accesses).powi(2) / (6.0 * accesses) * std::f64::consts::LOG2_E
    }
}

/// A tree that there cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoTree(&'static str);

impl Tree {
    /// With `height` levels below the root: the paper's *H*.
    ///
    /// # Errors
    /// When there are no levels, too many of them or of slots, or more accesses for an eviction than the root has slots.
    pub fn new(height: u8, preset: Preset) -> Result<Self, NoTree> {
        let Preset { slots, accesses } = preset;
        if !(1..=HEIGHT_MAX).contains(&height) {
            return Err(NoTree("a tree has 1 to 30 levels below the root"));
        }
        if !(1..=SLOTS_MAX).contains(&slots) {
            return Err(NoTree("a bucket has 1 to 4096 slots"));
        }
        if !(1..=slots).contains(&accesses) {
            return Err(NoTree(
                "an eviction comes after one access at least, and after no more than a bucket has slots",
            ));
        }
        Ok(Self { height, slots, accesses })
    }

    /// The lowest tree for so many blocks.
    ///
    /// # Errors
    /// When it would be too high.
    pub fn for_blocks(blocks: u64, preset: Preset) -> Result<Self, NoTree> {
        let heights = 1..=HEIGHT_MAX;
        let trees = heights.map(|height| Self::new(height, preset));
        let fits = |tree: &Result<Self, NoTree>| {
            tree.is_err() || tree.is_ok_and(|it| it.blocks_max() >= blocks)
        };
        trees
            .into_iter()
            .find(fits)
            .unwrap_or(Err(NoTree("so many blocks need a tree of more than 30 levels")))
    }

    /// The most blocks: *A* · 2^*H*, so that a leaf holds *A* on average.
    ///
    /// Section 3.1 says half of it, with which a leaf holds half of *A*, as Lemma 4.1 takes it for all buckets. Destinations hold *A* on average
    /// all the same ([`Preset::overflow_log2`]). Buckets that are long enough for them are long enough for such leaves.
    pub fn blocks_max(self) -> u64 {
        u64::from(self.accesses) << self.height
    }

    /// The paper's *H*.
    pub fn height(self) -> u8 {
        self.height
    }

    /// The paper's *Z*.
    pub fn slots(self) -> usize {
        self.slots.into()
    }

    /// The paper's *A*.
    pub fn accesses(self) -> usize {
        self.accesses.into()
    }

    /// Slots of a path.
    pub fn path_slots(self) -> usize {
        self.slots() * (usize::from(self.height) + 1)
    }

    /// How many leaves there are.
    pub fn leaves(self) -> u64 {
        1 << self.height
    }

    /// The buckets of the path to a leaf, the root first.
    pub fn path(self, leaf: Leaf) -> impl Iterator<Item = BucketId> {
        (0..=self.height).map(move |level| BucketId::on_path(leaf, level))
    }

    /// The leaf whose path is evicted as the `number`-th, from 0: equation (6).
    pub fn evicted(self, number: u64) -> Leaf {
        reverse_lexicographic(number, self.height)
    }

    /// The leaf with the same parent.
    pub fn beside(self, leaf: Leaf) -> Leaf {
        Leaf(leaf.0 ^ 1 << (self.height - 1))
    }

    /// Whether so many evictions have put something into a bucket below the root, and left it there: for one above the leaves, whether the last of them
    /// through the bucket above it went to the other side; for a leaf, whether there was one.
    pub fn is_filled(self, bucket: BucketId, evictions: u64) -> bool {
        let (level, index) = (bucket.level(), bucket.index());
        let above = (1u64 << (level - 1)) - 1;
        let Some(last) = evictions.checked_sub(1).filter(|last| *last >= index & above) else {
            return false;
        };
        let through_the_one_above = last - (last.wrapping_sub(index) & above);
        level == self.height || through_the_one_above & ((1 << level) - 1) != index
    }

    /// All buckets, the root first.
    pub fn buckets(self) -> impl Iterator<Item = BucketId> {
        let levels = 0..=self.height;
        levels.flat_map(|level| (0..1 << level).map(move |at| BucketId::new(level, at)))
    }

    /// The buckets of each step of that eviction, from the root on.
    pub fn triplets(self, number: u64) -> impl Iterator<Item = Triplet> {
        let leaf = self.evicted(number);
        (0..self.height).map(move |level| Triplet {
            source: BucketId::on_path(leaf, level),
            destination: BucketId::on_path(leaf, level + 1),
            sibling: BucketId::on_path(Leaf(leaf.0 ^ 1 << level), level + 1),
            is_last: level + 1 == self.height,
        })
    }
}

/// A bucket and its children: the blocks of the source go to the child that their path goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triplet {
    /// It is empty afterwards.
    pub source: BucketId,
    /// The child on the path that is evicted. It may hold blocks already.
    pub destination: BucketId,
    /// The other child. Unless it is a leaf, it is empty before: it gets a copy of the source.
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
    fn presets_overflow_as_seldom_as_they_say() {
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
        // 40 GB of 128 KiB blocks: 2^15 · 10 of them.
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

    /// What "non-leaf sibling buckets are guaranteed to be empty" says: whatever was in a bucket has left it by the time that it is a
    /// sibling again.
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
