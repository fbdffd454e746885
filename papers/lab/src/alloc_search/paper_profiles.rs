//! The profiles of IR-ORAM, and a profile that our search found.

use super::Profile;
use oblivio_models::paper::{PAPER_LEAF_LEVEL, PAPER_SLOTS, paper_tree_top_levels};

/// A configuration of IR-ORAM (section VI-B), for a tree with leaves on level 24, Z = 4, and ten
/// levels on the client.
#[derive(Clone, Copy, Debug)]
pub struct PaperProfile {
    /// The number of the configuration in the paper: IR-Alloc 1 to 4.
    pub number: u8,
    /// First level, last level, and slots per bucket of each range. All other levels have four
    /// slots per bucket.
    ranges: [(u8, u8, u16); 2],
    /// Slots of a path in storage (PL), as stated in the paper.
    pub stated_path_slots: u64,
}

/// IR-Alloc 1 to 4.
pub const PAPER_PROFILES: [PaperProfile; 4] = [
    PaperProfile { number: 1, ranges: [(10, 16, 2), (17, 19, 3)], stated_path_slots: 43 },
    PaperProfile { number: 2, ranges: [(10, 16, 2), (17, 18, 2)], stated_path_slots: 42 },
    PaperProfile { number: 3, ranges: [(10, 14, 1), (15, 18, 2)], stated_path_slots: 37 },
    PaperProfile { number: 4, ranges: [(10, 15, 1), (16, 18, 2)], stated_path_slots: 36 },
];

impl PaperProfile {
    /// Applies the same bucket sizes to another tree, at the same distance from the leaves. A
    /// smaller tree lacks levels at the root, and a larger one has additional levels there.
    ///
    /// Almost all lost space is near the leaves, so the loss stays the same. PL also stays the same
    /// if the client keeps [`paper_tree_top_levels`] and `leaf_level` is at least 14.
    pub fn scaled_to(&self, leaf_level: u8) -> Profile {
        let slots = (0..=leaf_level).map(|level| {
            let on_paper = i16::from(level) + i16::from(PAPER_LEAF_LEVEL) - i16::from(leaf_level);
            let range = self.ranges.iter().find(|(first, last, _)| {
                (i16::from(*first)..=i16::from(*last)).contains(&on_paper)
            });
            range.map_or(PAPER_SLOTS, |(_, _, slots)| *slots)
        });
        Profile::from_slots(slots.collect())
    }
}

/// Slots per bucket on each level: the result of a search on a tree of the evaluation's size
/// (`results/alloc-search-evaluation.json`). That tree is the paper's without its first six levels,
/// which only take memory on the client.
pub const SEARCHED_SLOTS: [u16; 19] = [4, 4, 4, 4, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4];

/// The number of levels that the client kept in the search for [`SEARCHED_SLOTS`].
pub const SEARCHED_TREE_TOP_LEVELS: u8 = paper_tree_top_levels(SEARCHED_SLOTS.len() as u8 - 1);

/// The profile of [`SEARCHED_SLOTS`] for another tree, aligned at the leaves.
pub fn searched_profile(leaf_level: u8, tree_top_levels: u8) -> Profile {
    let searched = Profile::from_slots(SEARCHED_SLOTS.to_vec());
    searched.carried(SEARCHED_TREE_TOP_LEVELS, PAPER_SLOTS, leaf_level, tree_top_levels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_models::paper::PAPER_TREE_TOP_LEVELS;

    #[test]
    fn the_profiles_of_the_paper_have_its_path_lengths_and_lose_under_one_percent() {
        for leaf_level in [14, 17, 24] {
            let whole = Profile::uniform(leaf_level, PAPER_SLOTS);
            let top = paper_tree_top_levels(leaf_level);
            assert_eq!(whole.path_slots(top), 60);
            for paper in PAPER_PROFILES {
                let profile = paper.scaled_to(leaf_level);
                assert_eq!(profile.path_slots(top), paper.stated_path_slots, "{paper:?}");
                assert!((0.0..0.01).contains(&profile.space_loss(&whole)), "{paper:?}");
            }
        }
        let loss = PAPER_PROFILES[0].scaled_to(24).space_loss(&Profile::uniform(24, 4));
        assert!((loss - 0.009).abs() < 0.0005, "the paper says around 0.9 %, this is {loss}");
    }

    #[test]
    fn the_searched_profile_is_scaled_to_the_tree_of_the_paper() {
        let profile = searched_profile(24, PAPER_TREE_TOP_LEVELS);
        assert_eq!(profile.to_string(), "0–9: 4, 10–12: 1, 13: 2, 14–19: 3, 20–24: 4");
        assert_eq!(profile.path_slots(PAPER_TREE_TOP_LEVELS), 43);
    }

    #[test]
    fn a_tree_without_levels_on_the_client_is_cut_at_the_root() {
        let profile = PAPER_PROFILES[0].scaled_to(8);
        assert_eq!(profile.slots(), [2, 3, 3, 3, 4, 4, 4, 4, 4]);
        assert_eq!(paper_tree_top_levels(8), 0);
    }

    #[test]
    fn a_profile_is_shown_by_its_stretches() {
        let shown = PAPER_PROFILES[0].scaled_to(24).to_string();
        assert_eq!(shown, "0–9: 4, 10–16: 2, 17–19: 3, 20–24: 4");
    }
}
