//! Parameters for superblocks in tests.

use oblivio_core::durable::Slots;
use oblivio_core::durable::rotating::RawParams;
use oblivio_volume::superblock::VolumeParams;

/// Returns valid parameters of a small volume. The golden superblocks contain them.
pub fn example_params() -> VolumeParams {
    VolumeParams::of(&example_raw_params())
}

/// Returns the parameters of [`example_params`] in the form that RAW ORAM takes.
pub fn example_raw_params() -> RawParams {
    RawParams {
        blocks: 1000,
        block_bytes: 4096,
        leaf_level: 9,
        slots: Slots::Same(5),
        evict_period: 5,
        stash_blocks_max: 64,
        tree_top_levels: 3,
        tree_top_ways: 0,
        recursion: None,
    }
}
