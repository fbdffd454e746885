//! Slots per level, and the profiles of the paper.

use std::fmt;

use oblivio_core::Geometry;
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::paper::{PAPER_LEAF_LEVEL, PAPER_SLOTS, paper_tree_top_levels};

/// Slots in each bucket of a level, from the root to the leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Profile(Vec<u16>);

impl Profile {
    /// `z` slots everywhere, in a tree whose leaves are on `leaf_level`.
    pub fn uniform(leaf_level: u8, z: u16) -> Self {
        Self(vec![z; usize::from(leaf_level) + 1])
    }

    /// The tree of the engine.
    ///
    /// # Errors
    /// [`LabError::Engine`] when there is no such tree, as a results file may claim.
    pub fn geometry(&self) -> Result<Geometry, LabError> {
        Ok(Geometry::profile(&self.0)?)
    }

    /// Slots for each level.
    pub fn slots(&self) -> &[u16] {
        &self.0
    }

    /// Slots of a path in storage, below the levels that the client keeps: the paper's PL.
    pub fn path_slots(&self, tree_top_levels: u8) -> u64 {
        self.0.iter().skip(tree_top_levels.into()).map(|z| u64::from(*z)).sum()
    }

    /// The part of the slots of `whole` that this profile does without.
    pub fn space_loss(&self, whole: &Self) -> f64 {
        1.0 - self.tree_slots() / whole.tree_slots()
    }

    pub(super) fn tree_slots(&self) -> f64 {
        (0..).zip(&self.0).map(|(level, z)| f64::from(*z) * 2f64.powi(level)).sum()
    }

    /// The same buckets at the same distance from the leaves of another tree, whose leaves are on
    /// `leaf_level`. Levels that the client keeps of either tree, and those that this tree does not
    /// have, are as `uniform` says: a level that was not searched keeps its slots.
    ///
    /// Space is lost near the leaves alone, and a block gets past a level or not whatever lies far
    /// below: so loss and path stay what they were. Above, the other tree has more room where it is
    /// deeper, and more subtrees that share it and the stash.
    pub fn carried(&self, tree_top_levels: u8, z: u16, leaf_level: u8, top_there: u8) -> Self {
        let slots = (0..=leaf_level).map(|level| {
            let here = (level + self.leaf_level()).checked_sub(leaf_level);
            match here {
                Some(here) if here >= tree_top_levels && level >= top_there => {
                    self.0[usize::from(here)]
                }
                _ => z,
            }
        });
        Self(slots.collect())
    }

    fn leaf_level(&self) -> u8 {
        (self.0.len() - 1) as u8
    }

    /// This profile with one slot less on each level of `levels`.
    pub(super) fn with_one_less(&self, levels: std::ops::Range<usize>) -> Self {
        let mut less = self.clone();
        less.0[levels].iter_mut().for_each(|z| *z -= 1);
        less
    }

    /// Steps down that leave no bucket larger than one nearer the leaves: of each stretch of levels with equal slots, those
    /// nearest the root lose a slot, as many levels of them as each of `at_once` says.
    pub(super) fn steps_down(&self, tree_top_levels: u8, at_once: &[usize]) -> Vec<Self> {
        let top = usize::from(tree_top_levels).min(self.0.len());
        let mut steps = Vec::new();
        let mut first = top;
        for stretch in self.0[top..].chunk_by(|above, below| above == below) {
            let sizes = at_once.iter().map(|levels| stretch.len().min(*levels));
            for levels in sizes.filter(|_| stretch[0] > 1) {
                let step = self.with_one_less(first..first + levels);
                // Two sizes may both be the whole stretch. Where slots grow towards the root, nothing nearer the root is smaller.
                if !steps.contains(&step) && (first == top || self.0[first - 1] < stretch[0]) {
                    steps.push(step);
                }
            }
            first += stretch.len();
        }
        steps
    }
}

/// Stretches of levels with equal slots: `0–9: 4, 10–16: 2, 17–24: 4`.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = 0;
        let stretches = self.0.chunk_by(|above, below| above == below).map(|stretch| {
            let last = first + stretch.len() - 1;
            let levels =
                if first == last { first.to_string() } else { format!("{first}–{last}") };
            first = last + 1;
            format!("{levels}: {}", stretch[0])
        });
        f.pad(&stretches.collect::<Vec<_>>().join(", "))
    }
}

/// A configuration that IR-ORAM gives (section VI-B), for its tree with leaves on level 24, Z = 4,
/// and ten levels on the client.
#[derive(Clone, Copy, Debug)]
pub struct PaperProfile {
    /// Its number there: IR-Alloc 1 to 4.
    pub number: u8,
    /// First level, last level, and slots of their buckets. All others have four.
    ranges: [(u8, u8, u16); 2],
    /// The slots of a path in storage that the paper states (PL).
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
    /// The same buckets at the same distance from the leaves of another tree. A smaller tree lacks
    /// levels at the root, a larger one has more of them.
    ///
    /// Space is lost near the leaves alone, so the loss stays what it was; and so does PL, as long as
    /// [`paper_tree_top_levels`] are on the client and `leaf_level` is 14 or more.
    pub fn scaled_to(&self, leaf_level: u8) -> Profile {
        let slots = (0..=leaf_level).map(|level| {
            let on_paper = i16::from(level) + i16::from(PAPER_LEAF_LEVEL) - i16::from(leaf_level);
            let range = self.ranges.iter().find(|(first, last, _)| {
                (i16::from(*first)..=i16::from(*last)).contains(&on_paper)
            });
            range.map_or(PAPER_SLOTS, |(_, _, slots)| *slots)
        });
        Profile(slots.collect())
    }
}

/// What a search found on a tree like the evaluation's (`results/alloc-search-evaluation.json`): as the
/// paper's, but for the first six levels, which only make room on the client.
pub const SEARCHED_SLOTS: [u16; 19] = [4, 4, 4, 4, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4];

/// Levels that the client kept in that search.
pub const SEARCHED_TREE_TOP_LEVELS: u8 = paper_tree_top_levels(SEARCHED_SLOTS.len() as u8 - 1);

/// The profile of [`SEARCHED_SLOTS`], at the same distance from the leaves of another tree.
pub fn searched_profile(leaf_level: u8, tree_top_levels: u8) -> Profile {
    let searched = Profile(SEARCHED_SLOTS.to_vec());
    searched.carried(SEARCHED_TREE_TOP_LEVELS, PAPER_SLOTS, leaf_level, tree_top_levels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::PAPER_TREE_TOP_LEVELS;

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
    fn the_profile_found_is_carried_to_the_tree_of_the_paper() {
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
    fn steps_down_take_a_slot_from_the_root_end_of_each_stretch() {
        let profile = Profile(vec![4, 4, 1, 2, 2, 4]);
        let steps = |at_once: &[usize]| -> Vec<_> {
            profile.steps_down(2, at_once).into_iter().map(|step| step.0).collect()
        };
        let [one, other, both] =
            [[4, 4, 1, 1, 2, 4], [4, 4, 1, 2, 2, 3], [4, 4, 1, 1, 1, 4]].map(Vec::from);
        assert_eq!(steps(&[1]), [one.clone(), other.clone()]);
        assert_eq!(steps(&[1, 4]), [one, both, other]);
    }

    #[test]
    fn a_profile_is_shown_by_its_stretches() {
        let shown = PAPER_PROFILES[0].scaled_to(24).to_string();
        assert_eq!(shown, "0–9: 4, 10–16: 2, 17–19: 3, 20–24: 4");
        assert_eq!(Profile(vec![3, 4]).to_string(), "0: 3, 1: 4");
    }
}
