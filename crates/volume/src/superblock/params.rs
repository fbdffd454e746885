//! The parameters of a volume: chosen when it is made, and never changed.

use oblivio_core::store::TreeId;
use oblivio_core::{Geometry, TreeConfig};

/// What shapes a volume. Public. The names of the papers are in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeParams {
    /// How many blocks it holds (N).
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// How blocks are hidden.
    pub scheme: SchemeId,
    /// The level of the leaves (L).
    pub leaf_level: u8,
    /// Slots of a bucket (Z).
    pub slots: u16,
    /// How many accesses come before each eviction (A).
    pub evict_period: u32,
    /// Blocks that may be left in the stash when an access begins (C).
    pub stash_blocks_max: u32,
    /// How many levels from the root on are kept on the client.
    pub tree_top_levels: u8,
}

/// How blocks are hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemeId {
    /// The one scheme so far.
    Rotating = 1,
}

/// The engine has the same bound.
const EVICT_PERIOD_MAX: u32 = 1 << 16;

impl VolumeParams {
    /// Bytes of the disk.
    pub fn capacity_bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }

    /// Whether there can be such a volume; if not, why.
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=EVICT_PERIOD_MAX).contains(&self.evict_period) {
            return Err(format!(
                "an eviction comes after 1 to {EVICT_PERIOD_MAX} accesses, not {}",
                self.evict_period
            ));
        }
        let geometry = Geometry::uniform(self.leaf_level, self.slots);
        let tree = geometry.map(|geometry| TreeConfig {
            tree_top_levels: self.tree_top_levels,
            tree: TreeId(0),
            ..TreeConfig::new(
                self.blocks,
                self.block_bytes as usize,
                geometry,
                self.stash_blocks_max as usize,
            )
        });
        tree.and_then(|tree| tree.shape()).map(drop).map_err(|error| error.to_string())
    }
}

impl SchemeId {
    pub(super) fn code(self) -> u16 {
        self as u16
    }

    pub(super) fn from_code(code: u16) -> Option<Self> {
        (code == Self::Rotating.code()).then_some(Self::Rotating)
    }
}
