//! Superblocks need parameters, whatever is tried with them.

use oblivio_volume::superblock::{SchemeId, Slots, VolumeParams};

/// The parameters of a small volume. They are possible, and golden superblocks hold them.
pub fn example_params() -> VolumeParams {
    VolumeParams {
        blocks: 1000,
        block_bytes: 4096,
        scheme: SchemeId::Rotating,
        leaf_level: 9,
        slots: Slots::Same(5),
        evict_period: 5,
        stash_blocks_max: 64,
        tree_top_levels: 3,
        tree_top_ways: 0,
        recursion: None,
    }
}
