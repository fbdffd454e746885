//! The parameters of a volume: chosen when it is made, and never changed.

use oblivio_core::scheme::RotatingTrees;
use oblivio_core::store::TreeId;
use oblivio_core::{Geometry, RawConfig, Recursion, RotatingConfig, TreeConfig, TreeTopKind};

use crate::error::VolumeError;

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
    pub slots: Slots,
    /// How many accesses come before each eviction (A).
    pub evict_period: u32,
    /// Blocks that may be left in the stash when an access begins (C).
    pub stash_blocks_max: u32,
    /// How many levels from the root on are kept on the client.
    pub tree_top_levels: u8,
    /// Ways of the sets in which the client finds blocks of these levels by their address (IR-Stash);
    /// 0 if it does not.
    pub tree_top_ways: u16,
    /// What part of the position map lies in the tree. None: all of it is client memory.
    pub recursion: Option<MapRecursion>,
}

/// Slots of the buckets of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slots {
    /// As many on every level.
    Same(u16),
    /// As many as it says for each level, the root's first (IR-Alloc).
    PerLevel(Vec<u16>),
}

/// How much of a position map stays on the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRecursion {
    /// The most of its entries.
    pub client_entries_max: u64,
    /// The most of its blocks.
    pub plb_blocks: u32,
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

    /// Levels and slots of the tree.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidConfig`](crate::error::VolumeErrorKind::InvalidConfig) when there is no
    /// such tree.
    pub fn geometry(&self) -> Result<Geometry, VolumeError> {
        Ok(match &self.slots {
            Slots::Same(slots) => Geometry::uniform(self.leaf_level, *slots)?,
            Slots::PerLevel(slots) => Geometry::profile(slots)?,
        })
    }

    /// The ORAM in these trees of the store.
    pub(crate) fn config(&self, trees: RotatingTrees) -> Result<RotatingConfig, VolumeError> {
        let geometry = self.geometry()?;
        let block_bytes = self.block_bytes as usize;
        let recursion = self.recursion.map(|recursion| Recursion {
            data_blocks: self.blocks,
            client_entries_max: recursion.client_entries_max,
            plb_blocks: recursion.plb_blocks as usize,
        });
        let blocks = match &recursion {
            Some(recursion) => recursion.tree_blocks(block_bytes, geometry.leaf_level())?,
            None => self.blocks,
        };
        let stash_blocks_max = self.stash_blocks_max as usize;
        let tree = TreeConfig {
            tree_top_levels: self.tree_top_levels,
            tree_top: match self.tree_top_ways {
                0 => TreeTopKind::Dedicated,
                ways => TreeTopKind::SetAssociative { ways },
            },
            tree: trees.slots,
            ..TreeConfig::new(blocks, block_bytes, geometry, stash_blocks_max)
        };
        let raw = RawConfig { tree, evict_period: self.evict_period };
        Ok(RotatingConfig { raw, recursion, trees })
    }

    /// Whether there can be such a volume; if not, why.
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=EVICT_PERIOD_MAX).contains(&self.evict_period) {
            return Err(format!(
                "an eviction comes after 1 to {EVICT_PERIOD_MAX} accesses, not {}",
                self.evict_period
            ));
        }
        if let Slots::PerLevel(slots) = &self.slots {
            if slots.len() != usize::from(self.leaf_level) + 1 {
                return Err("there are slots for more or fewer levels than it has".into());
            }
            if slots.iter().all(|each| *each == slots[0]) {
                return Err("the slots of its levels are all the same, and told one by one".into());
            }
        }
        let config =
            self.config(RotatingTrees::from(TreeId(0))).map_err(|error| error.to_string())?;
        config.shapes().map(drop).map_err(|error| error.to_string())
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
