//! Requirements on a new array.

use alloc::string::String;
use alloc::vec::Vec;

use super::RangePolicy;

/// Requirements on a new array of blocks. A scheme chooses each setting that is `None`, and refuses
/// a setting that it does not have.
#[derive(Clone, Debug)]
pub struct ArrayRequirements {
    /// Bytes of the array; rounded up to whole blocks.
    pub bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// The name of the scheme.
    pub scheme: String,
    /// Bytes of client memory for tree top, stash and position map together. A position map that
    /// does not fit is kept in the tree. If memory is still too small, the client keeps fewer
    /// levels of the tree.
    pub client_bytes_max: u64,
    /// Slots per bucket (Z). A list with an entry per level also sets the number of levels.
    pub slots: Option<Slots>,
    /// Accesses between evictions (A).
    pub evict_period: Option<u32>,
    /// Maximum number of blocks in the stash (C).
    pub stash_blocks_max: Option<u32>,
    /// Maximum bytes of the blocks in the buckets that the client keeps: see
    /// [`RawConfig::tree_top_blocks_max`](crate::RawConfig::tree_top_blocks_max).
    pub tree_top_bytes_max: Option<u64>,
    /// Number of ways of the sets in which the client finds blocks of the tree top by address
    /// (IR-Stash). 0 if it finds them only by leaf.
    pub tree_top_ways: Option<u16>,
    /// The size in bytes of the ranges of each class, ascending. The first is the size of a block.
    pub range_bytes: Option<Vec<u64>>,
    /// The ranges that a disk requests, with classes in bytes. The array may be larger than
    /// required, so that it consists of whole ranges.
    pub range_policy: Option<RangePolicy<u64>>,
    /// Number of share servers (ℓ).
    pub servers: Option<u8>,
    /// Number of share servers that may collude without learning anything (*t*).
    pub colluding: Option<u8>,
}

impl ArrayRequirements {
    /// Requirements on an array of `bytes` bytes, in blocks of 4 KiB. The client takes less than 64
    /// MiB of memory, including a cache of 16 MiB and excluding the data of requests in flight.
    pub fn new(bytes: u64, scheme: impl Into<String>) -> Self {
        Self {
            bytes,
            block_bytes: 4096,
            scheme: scheme.into(),
            client_bytes_max: 48 << 20,
            slots: None,
            evict_period: None,
            stash_blocks_max: None,
            tree_top_bytes_max: None,
            tree_top_ways: None,
            range_bytes: None,
            range_policy: None,
            servers: None,
            colluding: None,
        }
    }

    /// Number of blocks of the array.
    pub fn blocks(&self) -> u64 {
        self.bytes.div_ceil(u64::from(self.block_bytes.max(1)))
    }

    /// The names of the share-server settings that are present. Schemes without share servers
    /// refuse these settings.
    pub(super) fn server_settings(&self) -> Vec<&'static str> {
        [(self.servers.is_some(), "share servers"), (self.colluding.is_some(), "colluding servers")]
            .into_iter()
            .filter_map(|(is_set, what)| is_set.then_some(what))
            .collect()
    }

    /// The names of the settings for trees, buckets and stash that are present. Schemes without
    /// trees refuse these settings.
    pub(super) fn tree_settings(&self) -> Vec<&'static str> {
        [
            (self.slots.is_some(), "slots of a bucket (Z)"),
            (self.evict_period.is_some(), "accesses between evictions (A)"),
            (self.stash_blocks_max.is_some(), "bound on the stash (C)"),
            (self.tree_top_bytes_max.is_some(), "tree top"),
            (self.tree_top_ways.is_some(), "ways of a tree top"),
            (self.range_bytes.is_some() || self.range_policy.is_some(), "ranges"),
        ]
        .into_iter()
        .filter_map(|(is_set, what)| is_set.then_some(what))
        .collect()
    }
}

/// Slots of the buckets of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slots {
    /// The same number of slots on every level.
    Same(u16),
    /// The number of slots on each level, from the root down (IR-Alloc).
    PerLevel(Vec<u16>),
}
