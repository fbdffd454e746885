//! The results of a study.

use serde::{Deserialize, Serialize};

use super::{FoundCounts, Migration};

/// Counts of paths since a study began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathCounts {
    /// Paths for data blocks (`PT_d`).
    pub data: u64,
    /// Paths for position-map blocks (`PT_p`), and for blocks remapped by a group-counter overflow.
    pub position_map: u64,
    /// Paths of background evictions.
    pub evictions: u64,
    /// The maximum number of blocks in the stash, at the start or after a request.
    pub stash_blocks_max: usize,
}

impl PathCounts {
    /// Number of all paths.
    pub fn paths(&self) -> u64 {
        self.data + self.position_map + self.evictions
    }
}

/// The locations of blocks, and the locations where requests have found them so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The paths so far.
    pub paths: PathCounts,
    /// Blocks on each level, from the root down. Both data blocks and position-map blocks count.
    pub blocks: Vec<u64>,
    /// Slots on each level.
    pub slots: Vec<u64>,
    /// Blocks in the stash. All other blocks of the ORAM that are not on a level are in the PLB.
    pub stash_blocks: usize,
    /// The locations where requests for data found their blocks so far.
    pub found: FoundCounts,
    /// The locations where requests found position-map blocks that were not in the PLB, so far.
    /// Snapshots of older versions lack this field.
    #[serde(default)]
    pub found_position_map: FoundCounts,
    /// Moves of blocks since [`Study::watch_migration`](super::Study::watch_migration) was called;
    /// `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<Migration>,
}

impl Snapshot {
    /// The fraction of slots in use on each level, from 0 to 1 (IR-ORAM, Fig. 3).
    pub fn utilisation(&self) -> Vec<f64> {
        let levels = self.blocks.iter().zip(&self.slots);
        levels.map(|(blocks, slots)| *blocks as f64 / *slots as f64).collect()
    }
}
