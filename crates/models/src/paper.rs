//! The tree of IR-ORAM (Table I).

/// The level of the leaves.
pub const PAPER_LEAF_LEVEL: u8 = 24;

/// Number of levels on the client, which have 1023 buckets.
pub const PAPER_TREE_TOP_LEVELS: u8 = 10;

/// Slots per bucket (Z).
pub const PAPER_SLOTS: u16 = 4;

/// Number of levels that the client keeps in a tree cut at the root to `leaf_level`: the paper's
/// ten, minus the levels that the tree lacks.
pub const fn paper_tree_top_levels(leaf_level: u8) -> u8 {
    (leaf_level + PAPER_TREE_TOP_LEVELS).saturating_sub(PAPER_LEAF_LEVEL)
}
