//! Counts of a controller.

use serde::{Deserialize, Serialize};

use super::path_log::{PathAccess, Purpose};
use crate::Cycle;

/// Counts of a controller: for its whole run, or for the part after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerTally {
    /// Paths for requested blocks (`PT_d`).
    pub data: u64,
    /// Paths for the position map, by level from 1 on (`PT_p`).
    pub position_map: Vec<u64>,
    /// Paths of background and scheduled evictions.
    pub evictions: u64,
    /// Dummy paths (`PT_m`).
    pub dummies: u64,
    /// Paths of early write-backs, in slots that no request or eviction uses. Other counters of
    /// paths include them.
    pub converted: u64,
    /// Paths of ρ's small tree. Other counters of paths include them.
    pub small: u64,
    /// Requests without a path: the block was in the stash or, with IR-Stash, in the tree top.
    pub served_on_client: u64,
    /// Requests for a line that was waiting to be written.
    pub forwarded: u64,
    /// Dirty lines written back.
    pub write_backs: u64,
    /// Lines written back early. `write_backs` includes them.
    pub early_write_backs: u64,
    /// Early write-backs given up because the line was used again or evicted.
    pub early_given_up: u64,
    /// Cycles in which a path was in progress.
    pub busy: Cycle,
    /// The part of `busy` that was spent on evictions.
    pub busy_evicting: Cycle,
    /// The maximum number of blocks in the stash after a path.
    pub stash_blocks_max: usize,
    /// The number of context switches.
    #[serde(default)]
    pub context_switches: u64,
    /// Evictions that emptied the stash at a context switch. `evictions` includes them.
    #[serde(default)]
    pub flush_evictions: u64,
    /// The part of `busy_evicting` that was spent on `flush_evictions`.
    #[serde(default)]
    pub busy_flushing: Cycle,
    /// Cycles in which the tree top was moved to memory and back, and no path was in progress.
    #[serde(default)]
    pub moving_tree_top: Cycle,
}

impl ControllerTally {
    /// Number of all paths.
    pub fn paths(&self) -> u64 {
        self.data + self.position_map.iter().sum::<u64>() + self.evictions + self.dummies
    }

    /// Subtracts `before` from these counts. `stash_blocks_max` stays the maximum of the whole run.
    pub(crate) fn since(self, before: &Self) -> Self {
        let level = |level: usize| before.position_map.get(level).copied().unwrap_or(0);
        let position_map =
            self.position_map.iter().enumerate().map(|(number, count)| count - level(number));
        Self {
            data: self.data - before.data,
            position_map: position_map.collect(),
            evictions: self.evictions - before.evictions,
            dummies: self.dummies - before.dummies,
            converted: self.converted - before.converted,
            small: self.small - before.small,
            served_on_client: self.served_on_client - before.served_on_client,
            forwarded: self.forwarded - before.forwarded,
            write_backs: self.write_backs - before.write_backs,
            early_write_backs: self.early_write_backs - before.early_write_backs,
            early_given_up: self.early_given_up - before.early_given_up,
            busy: self.busy - before.busy,
            busy_evicting: self.busy_evicting - before.busy_evicting,
            stash_blocks_max: self.stash_blocks_max,
            context_switches: self.context_switches - before.context_switches,
            flush_evictions: self.flush_evictions - before.flush_evictions,
            busy_flushing: self.busy_flushing - before.busy_flushing,
            moving_tree_top: self.moving_tree_top - before.moving_tree_top,
        }
    }

    pub(super) fn count(&mut self, path: &PathAccess, cycles: Cycle) {
        self.busy += cycles;
        match path.purpose {
            Purpose::Data => self.data += 1,
            Purpose::PositionMap(level) => {
                let level = usize::from(level);
                self.position_map.resize(self.position_map.len().max(level), 0);
                self.position_map[level - 1] += 1;
            }
            Purpose::Eviction => {
                self.evictions += 1;
                self.busy_evicting += cycles;
            }
            Purpose::Dummy => self.dummies += 1,
        }
    }
}
