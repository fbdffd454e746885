//! Converts a volume's parameters to a search, and the found profile back to the volume.

use super::{Profile, Scheme, SearchPlan};

/// The public parameters of a volume's tree that a search needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeTree {
    /// Slots per bucket (Z).
    pub slots: u16,
    /// Number of accesses per eviction (A).
    pub evict_period: u32,
    /// The bound on the stash (C), in blocks.
    pub stash_blocks_max: usize,
    /// The level of the leaves (L).
    pub leaf_level: u8,
    /// Number of levels, from the root on, that the client keeps.
    pub tree_top_levels: u8,
}

/// Default limit on the leaf level of the searched tree. The search takes minutes.
pub const SEARCHED_LEAF_LEVEL: u8 = 17;

/// Number of levels by which the last tree is deeper than the searched one, if the volume is that
/// deep.
const DEEPER: u8 = 2;

/// Minimum number of unchanged levels above the searched ones, if the searched tree is shallower
/// than the volume's. The minimum is lower for small trees: half of the searched tree's leaf level.
/// With fewer unchanged levels, the stash could hold more blocks per subtree than in the volume.
const LEVELS_ABOVE: u8 = 8;

impl VolumeTree {
    /// The ORAM scheme of the volume.
    pub fn scheme(&self) -> Scheme {
        Scheme::Raw { evict_period: self.evict_period }
    }

    /// The maximum load of a volume in blocks per leaf: A/2.
    pub fn blocks_per_leaf_max(&self) -> f64 {
        f64::from(self.evict_period) / 2.0
    }

    /// Returns a search for this volume at its maximum load, on a tree with leaves on
    /// `leaf_level_max` at most.
    ///
    /// A deeper volume is cut at the root. The searched levels are then those nearest to the
    /// leaves, below some unchanged levels. The found profile must also keep to the limits on a
    /// tree that is two levels deeper, or as deep as the volume if that is less.
    pub fn search(&self, leaf_level_max: u8) -> SearchPlan {
        let leaf_level = self.leaf_level.min(leaf_level_max);
        let cut = self.leaf_level - leaf_level;
        let least = if cut == 0 { 0 } else { LEVELS_ABOVE.min(leaf_level / 2) };
        let tree_top_levels = self.tree_top_levels.saturating_sub(cut).max(least);
        // The first searched level, counted in the volume.
        let first = tree_top_levels + cut;
        let beside = u64::from(first.saturating_sub(self.tree_top_levels));
        let plan = SearchPlan {
            scheme: self.scheme(),
            leaf_level,
            slots: self.slots,
            tree_top_levels,
            path_slots_beside: beside * u64::from(self.slots),
            stash_blocks_max: self.stash_blocks_max,
            endurance_leaf_level: leaf_level + cut.min(DEEPER),
            endurance_accesses: 2_000_000,
            ..SearchPlan::like_the_paper(leaf_level)
        };
        plan.with_load(self.blocks_per_leaf_max())
    }

    /// Applies `profile`, found by a search with `plan`, to this volume.
    pub(super) fn carry<J>(&self, profile: &Profile, plan: &SearchPlan<J>) -> Profile {
        profile.carried(plan.tree_top_levels, self.slots, self.leaf_level, self.tree_top_levels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(leaf_level: u8, tree_top_levels: u8) -> VolumeTree {
        VolumeTree { slots: 5, evict_period: 5, stash_blocks_max: 64, leaf_level, tree_top_levels }
    }

    #[test]
    fn a_small_volume_is_searched_as_it_is_and_a_deep_one_cut_at_the_root() {
        let levels = |leaf_level: u8, top: u8, max| {
            let plan = tree(leaf_level, top).search(max);
            plan.check().unwrap();
            assert_eq!(plan.capacity, 5 << (plan.leaf_level - 1));
            // All levels of the volume that are in storage, searched or not.
            let searched = plan.uniform().path_slots(plan.tree_top_levels);
            let in_storage = u64::from(leaf_level + 1 - top) * 5;
            assert_eq!(searched + plan.path_slots_beside, in_storage);
            (plan.leaf_level, plan.tree_top_levels, plan.endurance_leaf_level)
        };
        assert_eq!(levels(17, 10, 17), (17, 10, 17));
        assert_eq!(levels(11, 10, 17), (11, 10, 11));
        assert_eq!(levels(18, 10, 17), (17, 9, 18));
        assert_eq!(levels(27, 10, 17), (17, 8, 19));
        assert_eq!(levels(27, 10, 6), (6, 3, 8));
        assert_eq!(levels(17, 0, 17), (17, 0, 17));
    }

    #[test]
    fn what_is_found_keeps_its_distance_from_the_leaves_and_what_was_not_searched_its_slots() {
        let plan = tree(7, 2).search(7);
        let found = Profile::uniform(7, 5).with_one_less(2..4).with_one_less(2..3);
        let carried = |leaf_level, top| tree(leaf_level, top).carry(&found, &plan);
        assert_eq!(carried(7, 2), found);
        assert_eq!(carried(9, 2).slots(), [5, 5, 5, 5, 3, 4, 5, 5, 5, 5]);
        assert_eq!(carried(7, 3).slots(), [5, 5, 5, 4, 5, 5, 5, 5]);
        assert_eq!(carried(4, 0).slots(), [4, 5, 5, 5, 5]);
        assert_eq!(carried(5, 0).slots(), [3, 4, 5, 5, 5, 5]);
    }
}
