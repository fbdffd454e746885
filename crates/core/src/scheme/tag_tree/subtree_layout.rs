//! The location of a tree's buckets in memory: the subtree layout (Ren et al., ISCA'13), with pages
//! instead of DRAM rows.
//!
//! If levels followed each other, each bucket of a path would be in another page. A processor takes
//! longer to find a page (a TLB miss) than to read from it. So the tree is cut into subtrees that
//! fit a page, from the leaves up, and a path goes through few of these pages.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use super::Slot;
use crate::geometry::{Geometry, Leaf};
use crate::hint::CACHE_LINE_BYTES;
use crate::memory::PAGE_BYTES;

const LINE_SLOTS: usize = CACHE_LINE_BYTES / size_of::<Slot>();
const PAGE_SLOTS: usize = PAGE_BYTES / size_of::<Slot>();

/// The location of a level's slots.
#[derive(Clone, Copy)]
pub(super) struct Level {
    /// The first slot of the level in the first subtree.
    start: usize,
    /// Number of slots from one subtree to the next.
    subtree_slots: usize,
    /// The level of the roots of the subtrees.
    root_level: u8,
    /// The mask of a leaf's bits that select the subtree.
    root_mask: u64,
    /// The mask of a bucket's index within its subtree.
    mask: u64,
    pub(super) bucket_slots: usize,
}

impl Level {
    /// The first slot of the bucket on the path to `leaf`.
    #[inline]
    pub(super) fn bucket(&self, leaf: Leaf) -> usize {
        let subtree = (leaf.0 & self.root_mask) as usize;
        let within = (leaf.0 >> self.root_level & self.mask) as usize;
        self.start + subtree * self.subtree_slots + within * self.bucket_slots
    }

    /// The indices of the level's buckets, in memory order.
    pub(super) fn indices(&self) -> impl Iterator<Item = u64> {
        let Self { root_level, root_mask, mask, .. } = *self;
        (0..=root_mask)
            .flat_map(move |root| (0..=mask).map(move |within| within << root_level | root))
    }
}

/// The layout of a whole tree.
pub(super) struct SubtreeLayout {
    /// The layouts of the levels, from the root down.
    pub(super) levels: Box<[Level]>,
    /// Number of slots, including the gaps between subtrees.
    pub(super) slots: u64,
    /// The level of the roots of the lowest subtrees, which contain the leaves.
    pub(super) last_root_level: u8,
}

impl SubtreeLayout {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let subtrees = subtrees(geometry);
        let last_root_level = subtrees.last().map_or(0, |subtree| subtree.start) as u8;
        let (mut levels, mut end) = (Vec::new(), 0u64);
        for subtree in subtrees {
            let root_level = subtree.start as u8;
            let mut start = end.next_multiple_of(PAGE_SLOTS as u64) as usize;
            let subtree_slots = slots_of(geometry, subtree.clone()).next_multiple_of(LINE_SLOTS);
            end = start as u64 + ((subtree_slots as u64) << root_level);
            for (depth, level) in subtree.enumerate() {
                let bucket_slots = geometry.slots(level);
                let (root_mask, mask) = ((1 << root_level) - 1, (1 << depth) - 1);
                levels.push(Level {
                    start,
                    subtree_slots,
                    root_level,
                    root_mask,
                    mask,
                    bucket_slots,
                });
                start += bucket_slots << depth;
            }
        }
        Self { levels: levels.into(), slots: end, last_root_level }
    }
}

/// The levels of each subtree, from the root down.
fn subtrees(geometry: &Geometry) -> Vec<Range<usize>> {
    let mut subtrees = Vec::new();
    let mut end = geometry.levels();
    while end > 0 {
        let fits = |root: &usize| slots_of(geometry, *root..end) <= PAGE_SLOTS;
        let root = (0..end - 1).rev().take_while(fits).last().unwrap_or(end - 1);
        subtrees.push(root..end);
        end = root;
    }
    subtrees.reverse();
    subtrees
}

/// Number of slots of a subtree that covers `levels`.
fn slots_of(geometry: &Geometry, levels: Range<usize>) -> usize {
    levels.enumerate().map(|(depth, level)| geometry.slots(level) << depth).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn seven_levels_of_four_slots_are_a_page() {
        let tree = Geometry::uniform(24, 4).unwrap();
        assert_eq!(subtrees(&tree), [0..4, 4..11, 11..18, 18..25]);
        let layout = SubtreeLayout::new(&tree);
        assert_eq!(layout.last_root_level, 18);
        let pages = |leaf| {
            let page = |level: &Level| level.bucket(Leaf(leaf)) / PAGE_SLOTS;
            layout.levels.iter().map(page).collect::<HashSet<_>>().len()
        };
        assert!((0..1 << 24).step_by(99_991).all(|leaf| pages(leaf) == 4));
    }

    #[test]
    fn every_slot_of_every_bucket_is_there_once() {
        let uneven: Vec<u16> = (0..=12).map(|level| [4, 1, 7, 250][level % 4]).collect();
        for slots in [&[3][..], &[1, 2, 3], &[4; 13], &uneven, &[255; 9]] {
            let tree = Geometry::profile(slots).unwrap();
            let layout = SubtreeLayout::new(&tree);
            let mut seen = HashSet::new();
            for (level, place) in layout.levels.iter().enumerate() {
                assert_eq!(place.bucket_slots, tree.slots(level));
                let mut indices: Vec<_> = place.indices().collect();
                assert!(indices.is_sorted_by_key(|index| place.bucket(Leaf(*index))));
                indices.sort_unstable();
                assert!(indices.iter().copied().eq(0..1 << level));
                for leaf in indices {
                    let first = place.bucket(Leaf(leaf));
                    seen.extend(first..first + place.bucket_slots);
                    // A level ignores the bits of a leaf that it does not have.
                    assert_eq!(place.bucket(Leaf(leaf | 1 << level)), first);
                }
            }
            assert_eq!(seen.len() as u64, tree.tree_slots());
            assert!(seen.iter().all(|slot| (*slot as u64) < layout.slots));
        }
    }
}
