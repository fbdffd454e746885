//! The number of slots per bucket, by level.

use std::fmt;

use oblivio_core::Geometry;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The slots per bucket on each level, from the root to the leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Profile(Vec<u16>);

impl Profile {
    /// Creates a profile with the given slots per bucket, from the root to the leaves.
    pub fn from_slots(slots: Vec<u16>) -> Self {
        Self(slots)
    }

    /// Creates a profile with `z` slots per bucket on all levels of a tree whose leaves are on
    /// `leaf_level`.
    pub fn uniform(leaf_level: u8, z: u16) -> Self {
        Self(vec![z; usize::from(leaf_level) + 1])
    }

    /// The engine's geometry for this profile.
    ///
    /// # Errors
    /// [`Error::Engine`] if the engine has no such tree. A results file may hold any numbers.
    pub fn geometry(&self) -> Result<Geometry, Error> {
        Ok(Geometry::profile(&self.0)?)
    }

    /// The slots per bucket on each level.
    pub fn slots(&self) -> &[u16] {
        &self.0
    }

    /// Number of slots of a path on the levels in storage: the paper's PL.
    pub fn path_slots(&self, tree_top_levels: u8) -> u64 {
        self.0.iter().skip(tree_top_levels.into()).map(|z| u64::from(*z)).sum()
    }

    /// The fraction of the slots of `whole` that this profile gives up.
    pub fn space_loss(&self, whole: &Self) -> f64 {
        1.0 - self.tree_slots() / whole.tree_slots()
    }

    pub(super) fn tree_slots(&self) -> f64 {
        (0..).zip(&self.0).map(|(level, z)| f64::from(*z) * 2f64.powi(level)).sum()
    }

    /// Applies this profile to another tree with leaves on `leaf_level`. The two trees are aligned
    /// at the leaves. Levels that the client keeps in either tree, and levels above the root of the
    /// searched tree, get `z` slots.
    ///
    /// Almost all slots, and so almost all lost slots, are near the leaves. Whether a block passes
    /// a level does not depend on levels far below it. So space loss and the number of slots on a
    /// path in storage stay the same. If the other tree is deeper, it has more slots above the
    /// searched levels, and more subtrees that share them and the stash.
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

    /// Returns this profile with one slot less per bucket on each level of `levels`.
    pub(super) fn with_one_less(&self, levels: std::ops::Range<usize>) -> Self {
        let mut less = self.clone();
        less.0[levels].iter_mut().for_each(|z| *z -= 1);
        less
    }

    /// Lists the profiles that are one step smaller, except those in which the step makes buckets
    /// smaller than the buckets above them in storage. A step takes one slot per bucket from the
    /// topmost levels of a stretch of levels in storage that have equal slots. `at_once` lists how
    /// many levels a step may include. No bucket loses its last slot.
    pub fn steps_down(&self, tree_top_levels: u8, at_once: &[usize]) -> Vec<Self> {
        let top = usize::from(tree_top_levels).min(self.0.len());
        let mut steps = Vec::new();
        let mut first = top;
        for stretch in self.0[top..].chunk_by(|above, below| above == below) {
            let sizes = at_once.iter().map(|levels| stretch.len().min(*levels));
            for levels in sizes.filter(|_| stretch[0] > 1) {
                let step = self.with_one_less(first..first + levels);
                // Two entries of `at_once` may both cover the whole stretch. A step is allowed only
                // if the level above the stretch has fewer slots.
                if !steps.contains(&step) && (first == top || self.0[first - 1] < stretch[0]) {
                    steps.push(step);
                }
            }
            first += stretch.len();
        }
        steps
    }
}

/// Lists stretches of levels with equal slots: `0–9: 4, 10–16: 2, 17–24: 4`.
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let profile = Profile(vec![4, 4, 2, 3, 3]);
        assert_eq!(profile.to_string(), "0–1: 4, 2: 2, 3–4: 3");
    }
}
