//! The tree of IR-ORAM (Table I).

/// The level of the leaves.
pub const PAPER_LEAF_LEVEL: u8 = 24;

/// Levels on the client: 1023 buckets.
pub const PAPER_TREE_TOP_LEVELS: u8 = 10;

/// The slots of a bucket (Z).
pub const PAPER_SLOTS: u16 = 4;

/// How many levels the client keeps when the tree is cut to `leaf_level` at the root: the paper's
/// ten, less those that the tree lacks.
pub const fn paper_tree_top_levels(leaf_level: u8) -> u8 {
    (leaf_level + PAPER_TREE_TOP_LEVELS).saturating_sub(PAPER_LEAF_LEVEL)
}
