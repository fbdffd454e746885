//! Counts of the cost of requests.

use serde::{Deserialize, Serialize};

/// The cost of a number of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of requests.
    pub requests: u64,
    /// Path accesses for requested blocks.
    pub data: u64,
    /// Path accesses that fetched a block of the position map.
    pub position_map: u64,
    /// Path accesses to remap a group whose counters overflowed.
    pub remap: u64,
    /// The number of background evictions.
    pub background_evictions: u64,
    /// Scheduled evictions, after every fifth access of RAW ORAM.
    pub due_evictions: u64,
    /// Path accesses to the small tree of ρ, without dummies.
    pub small: u64,
    /// Dummy path accesses to either tree of ρ.
    pub dummies: u64,
    /// Bytes transferred to and from storage.
    pub bytes: u64,
    /// AES blocks of sealing and opening buckets, without the tags of PMMAC.
    pub aes_blocks: u64,
}

impl Counts {
    /// The number of paths that were read from storage.
    pub fn paths(&self) -> u64 {
        self.known_paths() + self.due_evictions
    }

    /// The number of paths read, except those of scheduled evictions. The engine does not count
    /// scheduled evictions: `due_evictions` is the number of paths read minus this number.
    pub(super) fn known_paths(&self) -> u64 {
        let needed = self.data + self.position_map + self.remap + self.small;
        needed + self.background_evictions + self.dummies
    }

    /// The value of `count` per request.
    pub fn per_request(&self, count: u64) -> f64 {
        count as f64 / self.requests as f64
    }

    /// Subtracts the earlier counts `before` from these counts.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            data: self.data - before.data,
            position_map: self.position_map - before.position_map,
            remap: self.remap - before.remap,
            background_evictions: self.background_evictions - before.background_evictions,
            due_evictions: self.due_evictions - before.due_evictions,
            small: self.small - before.small,
            dummies: self.dummies - before.dummies,
            bytes: self.bytes - before.bytes,
            aes_blocks: self.aes_blocks - before.aes_blocks,
        }
    }
}
