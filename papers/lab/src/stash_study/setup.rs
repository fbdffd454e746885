//! Setups: a scheme, a tree, and its load.

use std::fmt;

use oblivio_core::{Error, Geometry, RawConfig, TreeConfig};
use serde::{Deserialize, Serialize};

/// The schemes whose stash sizes Tiny ORAM states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// Path ORAM, Z = 4.
    PathZ4,
    /// RAW ORAM, Z = 5, A = 5.
    RawZ5A5,
}

impl Scheme {
    /// Slots per bucket (Z).
    pub fn z(self) -> u16 {
        match self {
            Self::PathZ4 => 4,
            Self::RawZ5A5 => 5,
        }
    }

    /// The number of accesses per write-back of a path: 1, or A in RAW ORAM.
    pub fn accesses_per_write_back(self) -> u32 {
        match self {
            Self::PathZ4 => 1,
            Self::RawZ5A5 => 5,
        }
    }

    /// The stash bound (C) that Tiny ORAM states for an overflow probability of 2^-80 (sections
    /// II-A and IV-B).
    pub fn stated_stash_blocks_max(self) -> u32 {
        match self {
            Self::PathZ4 => 78,
            Self::RawZ5A5 => 64,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PathZ4 => "Path Z4",
            Self::RawZ5A5 => "RAW Z5A5",
        })
    }
}

/// A scheme on a tree with `capacity` blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The scheme of the ORAM.
    pub scheme: Scheme,
    /// The level of the leaves (L).
    pub leaf_level: u8,
    /// The number of blocks (N).
    pub capacity: u64,
}

/// Bytes of a block. Blocks have no data, since only their number counts.
const BLOCK_BYTES: usize = 0;

impl Setup {
    /// The load of the tree in blocks per leaf, `N / 2^L`.
    pub fn blocks_per_leaf(&self) -> f64 {
        self.capacity as f64 / (1u64 << self.leaf_level) as f64
    }

    /// The fraction of all slots that hold a block.
    pub fn slots_used(&self) -> f64 {
        let buckets = (2u64 << self.leaf_level) - 1;
        self.capacity as f64 / (buckets * u64::from(self.scheme.z())) as f64
    }

    pub(super) fn tree(&self, stash_blocks_max: usize) -> Result<TreeConfig, Error> {
        let geometry = Geometry::uniform(self.leaf_level, self.scheme.z())?;
        Ok(TreeConfig::new(self.capacity, BLOCK_BYTES, geometry, stash_blocks_max))
    }

    /// The configuration of RAW ORAM on `tree`.
    pub(super) fn raw(&self, tree: TreeConfig) -> RawConfig {
        RawConfig::of_tree(tree, self.scheme.accesses_per_write_back())
    }
}
