//! PushToLeaf of Tiny ORAM, section III-A, Algorithm 1, computed with bit operations.

use alloc::vec;
use alloc::vec::Vec;

use super::{ArenaSlot, Entry, TreeTop};
use crate::geometry::{Geometry, Leaf};

/// The arrays `S` and `Occupied` of the paper: the block planned for each slot of a path.
pub(crate) struct PathPlan {
    /// The slots of all buckets of a path in one array, from the root to the leaf. A slot without a
    /// block holds a dummy.
    slots: Vec<Entry>,
    /// The buckets of the path, from the root down.
    buckets: Vec<Bucket>,
    /// A bit mask of the full levels: bit `i` is set if level `i` has no free slot. Bits past the
    /// leaf level are set.
    full: u64,
    dummy: Entry,
}

/// The slots of a bucket, as indices into the `slots` of a [`PathPlan`].
#[derive(Clone, Copy)]
struct Bucket {
    start: usize,
    /// The index of the first free slot: `free - start` is the paper's `Occupied`.
    free: usize,
    end: usize,
}

impl PathPlan {
    pub(crate) fn new(geometry: &Geometry, zero: ArenaSlot) -> Self {
        let dummy = Entry::dummy(zero);
        let buckets = (0..geometry.levels()).map(|level| {
            let start = geometry.path_slots_above(level);
            Bucket { start, free: start, end: start + geometry.slots(level) }
        });
        Self {
            slots: vec![dummy; geometry.path_slots()],
            buckets: buckets.collect(),
            full: u64::MAX,
            dummy,
        }
    }

    /// Empties all slots.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(self.dummy);
        self.buckets.iter_mut().for_each(|bucket| bucket.free = bucket.start);
        self.full = u64::MAX << self.buckets.len();
    }

    /// All slots of the path.
    #[inline]
    pub(crate) fn slots(&self) -> &[Entry] {
        &self.slots
    }

    /// The slots of the bucket on `level`: first blocks, then dummies.
    #[inline]
    pub(crate) fn bucket(&self, level: usize) -> &[Entry] {
        let Bucket { start, end, .. } = self.buckets[level];
        &self.slots[start..end]
    }

    /// The blocks that go into the bucket on `level`.
    #[inline]
    pub(crate) fn blocks(&self, level: usize) -> &[Entry] {
        let Bucket { start, free, .. } = self.buckets[level];
        &self.slots[start..free]
    }

    /// One iteration of Algorithm 1: puts `entry` into the deepest free slot on the path to `leaf`
    /// that is also on the entry's own path. If that slot is on a level of `top`, the tree top must
    /// also have a free entry for the block. Returns whether the block was placed.
    #[inline]
    pub(crate) fn place(&mut self, entry: Entry, leaf: Leaf, top: &mut TreeTop) -> bool {
        // Alg. 1, line 7: `PushBack` finds the deepest level with room, if there is one.
        let deepest = push_back(leaf, entry.leaf, self.full)
            .filter(|level| *level >= usize::from(top.levels()) || top.reserve(entry.address));
        match deepest {
            Some(level) => {
                // Alg. 1, lines 9 and 10: the next slot of this bucket points to the block.
                let bucket = &mut self.buckets[level];
                self.slots[bucket.free] = entry;
                // Alg. 1, line 11: one more slot is occupied.
                bucket.free += 1;
                // Alg. 1, line 16: note whether the bucket is full now.
                self.full |= u64::from(bucket.free == bucket.end) << level;
                true
            }
            None => false,
        }
    }
}

/// `PushBack` of Algorithm 1: the deepest level that the paths to `evicted` and `own` share and
/// that is not full.
///
/// The code differs from the paper in form, not in result. The paper's `t1 = (l ⊕ l') | 0` appends
/// a 0 on the right, so that equal labels share all levels. To find the leftmost set bit, the paper
/// reverses, isolates the lowest bit and reverses again; the code counts leading zeros.
#[inline]
fn push_back(evicted: Leaf, own: Leaf, full: u64) -> Option<usize> {
    // Alg. 1, lines 13 to 15: a 1 for each level that both paths share.
    let t1 = (evicted.0 ^ own.0) << 1;
    let t2 = t1 & t1.wrapping_neg();
    let t3 = t2.wrapping_sub(1);
    // Alg. 1, line 17: without the levels that are full.
    let t4 = t3 & !full;
    // Alg. 1, lines 18 to 23: the deepest of these levels, if there is one.
    (t4 != 0).then(|| 63 - t4.leading_zeros() as usize)
}

/// Whether the paths to two leaves share the bucket on `level`. This is the definition that
/// `push_back` computes with bit operations.
#[cfg(test)]
fn share_bucket(a: Leaf, b: Leaf, level: u8) -> bool {
    use crate::geometry::BucketId;
    BucketId::on_path(a, level) == BucketId::on_path(b, level)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use crate::stash::{BlockArena, Stash, TreeTopKind};
    use proptest::prelude::*;

    /// A slot of an arena for blocks without contents: these tests use only addresses and leaves.
    fn zero() -> ArenaSlot {
        BlockArena::new(0, 0, 16).unwrap().zero()
    }

    fn no_top(geometry: &Geometry) -> TreeTop {
        TreeTop::new(TreeTopKind::Dedicated, 0, geometry)
    }

    /// Runs the fast and the literal algorithm on a stash whose block `i` has leaf `leaves[i]`.
    /// Compares every slot of the path to `evicted`, and the blocks that stay in the stash.
    fn same_as_literal(geometry: &Geometry, evicted: Leaf, leaves: &[u64]) {
        let mut stash = Stash::new(leaves.len(), zero());
        for (address, leaf) in (0..).zip(leaves) {
            stash.insert(Entry { address, leaf: Leaf(*leaf), place: zero() });
        }
        let mut plan = PathPlan::new(geometry, zero());
        stash.push_to_leaf(evicted, &mut no_top(geometry), &mut plan);

        let literal_stash =
            (0..).zip(leaves).map(|(address, leaf)| (address, Leaf(*leaf))).collect();
        let (path, left) =
            reference::push_to_leaf(literal_stash, evicted, geometry, |_, _, _| true);
        for (level, bucket) in path.iter().enumerate() {
            let planned: Vec<_> = plan.blocks(level).iter().map(|e| (e.address, e.leaf)).collect();
            assert_eq!(&planned, bucket, "level {level} of {evicted:?}, stash {leaves:?}");
            assert!(bucket.iter().all(|(_, leaf)| share_bucket(*leaf, evicted, level as u8)));
        }
        let stuck: Vec<_> = stash.entries().iter().map(|e| (e.address, e.leaf)).collect();
        assert_eq!(stuck, left);

        let fills: Vec<_> = path.iter().map(Vec::len).collect();
        let by_level =
            reference::greedy_fills(leaves.iter().map(|l| Leaf(*l)).collect(), evicted, geometry);
        assert_eq!(fills, by_level, "Path ORAM's own greedy eviction fills the same slots");
    }

    #[test]
    fn figure_3_of_tiny_oram() {
        // Z = 2, eviction to leaf 1. Block A of the figure (here address 3) goes to b2, because b1
        // is full. Block B (address 4) then has room only in b3.
        let geometry = Geometry::uniform(2, 2).unwrap();
        let leaves = [1, 1, 3, 1, 3];
        let mut stash = Stash::new(leaves.len(), zero());
        for (address, leaf) in (0..).zip(leaves) {
            stash.insert(Entry { address, leaf: Leaf(leaf), place: zero() });
        }
        let mut plan = PathPlan::new(&geometry, zero());
        stash.push_to_leaf(Leaf(1), &mut no_top(&geometry), &mut plan);
        let names = |level| plan.blocks(level).iter().map(|e| e.address).collect::<Vec<_>>();
        assert_eq!((names(2), names(1), names(0)), (vec![0, 1], vec![2, 3], vec![4]));
        assert_eq!(stash.len(), 0);
    }

    #[test]
    fn exhaustive_for_small_trees() {
        // Every stash of up to five blocks, in every order, on every path.
        for (leaf_level, z) in [(0, 1), (1, 1), (1, 2), (2, 1), (2, 2)] {
            let geometry = Geometry::uniform(leaf_level, z).unwrap();
            let labels = geometry.leaves();
            for blocks in 0..=5u32 {
                for stash in 0..labels.pow(blocks) {
                    let leaves: Vec<_> =
                        (0..blocks).map(|i| stash / labels.pow(i) % labels).collect();
                    for evicted in 0..labels {
                        same_as_literal(&geometry, Leaf(evicted), &leaves);
                    }
                }
            }
        }
    }

    /// Labels that share a path prefix of uniformly random length with label 0: the lowest bits are
    /// zero. Uniformly random labels would nearly all diverge within a few levels of the root.
    fn label(leaf_level: u8) -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..=leaf_level)
            .prop_map(move |(bits, common)| (bits << common) & ((1 << leaf_level) - 1))
    }

    proptest! {
        #[test]
        fn equals_the_literal_greedy_algorithm(
            (slots, evicted, leaves) in (0u8..=40).prop_flat_map(|leaf_level| (
                prop::collection::vec(1u16..6, usize::from(leaf_level) + 1),
                label(leaf_level),
                prop::collection::vec(label(leaf_level), 0..300),
            )),
        ) {
            same_as_literal(&Geometry::profile(&slots).unwrap(), Leaf(evicted), &leaves);
        }

        #[test]
        fn a_full_stash_fills_the_whole_path(leaf_level in 0u8..=40, z in 1u16..6, evicted: u64) {
            let geometry = Geometry::uniform(leaf_level, z).unwrap();
            let evicted = Leaf(evicted & (geometry.leaves() - 1));
            same_as_literal(&geometry, evicted, &vec![evicted.0; geometry.path_slots() + 7]);
        }
    }
}
