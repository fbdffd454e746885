//! Settings: the trees, their load, and the form of an access.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An ORAM of ranges. The papers' names are in parentheses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeStashSetting {
    /// The number of blocks (N).
    pub blocks: u32,
    /// The level of the leaves, in every tree (L of Tiny ORAM, h of rORAM).
    pub leaf_level: u8,
    /// Slots of a bucket (Z).
    pub slots: u8,
    /// Accesses to blocks per eviction (A).
    pub evict_period: u32,
    /// The classes of the sub-ORAMs, ascending. Class `i` has ranges of `2^i` blocks.
    pub classes: Vec<u8>,
    /// The form of an access: the ranges that it reads and removes.
    pub form: Form,
    /// Number of levels from the root on that the client keeps, without a bound on their blocks.
    pub tree_top_levels: u8,
}

/// The form of an access: the ranges that it reads and removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Two ranges, whose copies are removed from the tree: rORAM as published.
    Published,
    /// One aligned range. Copies stay in the tree, and are live if the position map has their leaf,
    /// as in this project's volumes.
    Volume,
}

/// The stash bound of a default volume (C).
const VOLUME_STASH_BLOCKS_MAX: u32 = 64;

impl RangeStashSetting {
    /// The paper's setting, with `blocks_per_leaf` blocks per leaf. The paper has one.
    pub(super) fn published(blocks_per_leaf: u32, slots: u8) -> Self {
        let level = 12;
        Self {
            blocks: 1 << level,
            leaf_level: level - blocks_per_leaf.ilog2() as u8,
            slots,
            evict_period: 1,
            classes: (0..=4).collect(),
            form: Form::Published,
            tree_top_levels: 0,
        }
    }

    /// A volume's setting, with `quarters` quarters of a block per leaf. Volumes have ten.
    pub(super) fn volume(leaf_level: u8, quarters: u32, classes: &[u8], top: u8) -> Self {
        let longest = classes.last().unwrap_or(&0);
        Self {
            // Round down to whole ranges of all classes.
            blocks: (((quarters << leaf_level) / 4) >> longest) << longest,
            leaf_level,
            slots: 5,
            evict_period: 5,
            classes: classes.to_vec(),
            form: Form::Volume,
            tree_top_levels: top,
        }
    }

    /// Blocks of the longest range.
    pub(super) fn longest(&self) -> u32 {
        1 << self.classes.last().copied().unwrap_or(0)
    }

    /// Blocks that may wait for a tree before a volume evicts ahead of time: A ·
    /// 2^`tree_top_levels` + C. `None` for the published form, which has no bound.
    pub fn bound(&self) -> Option<u32> {
        let waiting = self.evict_period << self.tree_top_levels;
        (self.form == Form::Volume).then_some(waiting + VOLUME_STASH_BLOCKS_MAX)
    }

    /// The load of the trees, in blocks per leaf.
    pub fn blocks_per_leaf(&self) -> f64 {
        f64::from(self.blocks) / f64::from(1u32 << self.leaf_level)
    }
}

impl fmt::Display for RangeStashSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Published => "published",
            Form::Volume => "volume",
        };
        let classes: Vec<_> = self.classes.iter().map(u8::to_string).collect();
        write!(
            f,
            "{form} Z{} A{} L{} K{}, classes {}",
            self.slots,
            self.evict_period,
            self.leaf_level,
            self.tree_top_levels,
            classes.join(" ")
        )
    }
}
