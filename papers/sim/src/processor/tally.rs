//! What a processor counts.

use serde::{Deserialize, Serialize};

use crate::Cycle;

/// What has happened up to the last request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Instructions fetched. When the trace is over, all of them are retired.
    pub instructions: u64,
    /// Reads that found their line in the LLC, also where it was still under way.
    pub read_hits: u64,
    /// Those of `read_hits` that were fetched before their line had come, and waited for it with the
    /// read that asked for it. Counted when they complete.
    pub merges: u64,
    /// Reads that did not find their line.
    pub read_misses: u64,
    /// Writes that found their line.
    pub write_hits: u64,
    /// Writes that did not.
    pub write_misses: u64,
    /// Changed lines that left the LLC: the write-backs.
    pub dirty_victims: u64,
    /// Unchanged lines that left it.
    pub clean_victims: u64,
    /// Why fetch stood still.
    pub stalls: Stalls,
}

impl Tally {
    /// Records of the trace that were run: each uses the LLC once.
    pub fn records(&self) -> u64 {
        self.read_hits + self.read_misses + self.write_hits + self.write_misses
    }

    /// What has happened after `before`.
    pub fn since(self, before: &Self) -> Self {
        Self {
            instructions: self.instructions - before.instructions,
            read_hits: self.read_hits - before.read_hits,
            merges: self.merges - before.merges,
            read_misses: self.read_misses - before.read_misses,
            write_hits: self.write_hits - before.write_hits,
            write_misses: self.write_misses - before.write_misses,
            dirty_victims: self.dirty_victims - before.dirty_victims,
            clean_victims: self.clean_victims - before.clean_victims,
            stalls: Stalls {
                rob: self.stalls.rob - before.stalls.rob,
                write_backs: self.stalls.write_backs - before.stalls.write_backs,
                fetches: self.stalls.fetches - before.stalls.fetches,
            },
        }
    }
}

/// Cycles in which no instruction was fetched although there was one, by what held it up first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// The reorder buffer was full.
    pub rob: Cycle,
    /// A changed line had to leave the LLC, and too many write-backs waited for memory.
    pub write_backs: Cycle,
    /// A line was missing, and too many fetches were under way.
    pub fetches: Cycle,
}
