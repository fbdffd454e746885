//! What a study saw.

use serde::{Deserialize, Serialize};

use super::{Found, Migration};

/// Paths since a study began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathCounts {
    /// For data blocks (`PT_d`).
    pub data: u64,
    /// For blocks of the position map (`PT_p`), and for those whose group of counters began anew.
    pub position_map: u64,
    /// Background evictions.
    pub evictions: u64,
    /// The most blocks in the stash after a request.
    pub stash_blocks_max: usize,
}

impl PathCounts {
    /// All paths.
    pub fn paths(&self) -> u64 {
        self.data + self.position_map + self.evictions
    }
}

/// Where blocks are, and where they were found so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The paths so far.
    pub paths: PathCounts,
    /// Blocks on each level, from the root down, of data and of the position map.
    pub blocks: Vec<u64>,
    /// Slots on each level.
    pub slots: Vec<u64>,
    /// Blocks in the stash. Those that are neither here nor on a level are in the PLB.
    pub stash_blocks: usize,
    /// Where data was found so far.
    pub found: Found,
    /// Where blocks of the position map were found so far that were not in the PLB. Snapshots of older versions do
    /// not say.
    #[serde(default)]
    pub found_position_map: Found,
    /// Where blocks went so far, if [someone watched](super::Study::watch_migration).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<Migration>,
}

impl Snapshot {
    /// Which part of the slots of each level holds blocks, from 0 to 1 (IR-ORAM, Fig. 3).
    pub fn utilisation(&self) -> Vec<f64> {
        let levels = self.blocks.iter().zip(&self.slots);
        levels.map(|(blocks, slots)| *blocks as f64 / *slots as f64).collect()
    }
}
