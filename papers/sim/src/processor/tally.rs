//! Counts of a processor.

use serde::{Deserialize, Serialize};

use crate::Cycle;

/// Counts of a processor up to the last record that has run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Instructions fetched. At the end of the trace, all of them have retired.
    pub instructions: u64,
    /// Reads that hit the LLC, including lines in flight.
    pub read_hits: u64,
    /// The part of `read_hits` whose line was in flight, so that the reads waited for an earlier
    /// fetch. Reads are counted when they complete.
    pub merges: u64,
    /// Reads that missed the LLC.
    pub read_misses: u64,
    /// Writes that hit the LLC.
    pub write_hits: u64,
    /// Writes that missed the LLC.
    pub write_misses: u64,
    /// Dirty lines evicted from the LLC: the write-backs.
    pub dirty_victims: u64,
    /// Clean lines evicted from the LLC.
    pub clean_victims: u64,
    /// Cycles in which fetch stalled.
    pub stalls: Stalls,
}

impl Tally {
    /// Records of the trace that have run. Each uses the LLC once.
    pub fn records(&self) -> u64 {
        self.read_hits + self.read_misses + self.write_hits + self.write_misses
    }

    /// Subtracts the earlier counts `before` from these counts.
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

/// Cycles in which no instruction was fetched although one remained. If several causes apply, the
/// cycle counts only for the first of them, in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// Cycles in which the reorder buffer was full.
    pub rob: Cycle,
    /// Cycles in which a dirty line had to leave the LLC, but too many write-backs waited for
    /// memory.
    pub write_backs: Cycle,
    /// Cycles in which a line was missing, but too many fetches were in flight.
    pub fetches: Cycle,
}
