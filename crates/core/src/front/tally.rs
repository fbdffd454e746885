//! What a frontend did.

/// Counters of one frontend since it was made. Secret, but for the sum of the accesses, which
/// storage sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontendTally {
    /// Path accesses for blocks that were asked for: one a request that is no stash hit.
    pub data_accesses: u64,
    /// Path accesses that fetched a block of the position map.
    pub position_map_accesses: u64,
    /// Path accesses that moved a block because the counters of its group began anew.
    pub remap_accesses: u64,
    /// Requests for which a position-map block was found in the PLB.
    pub plb_hits: u64,
    /// Requests served without a path access, because the block was on the client: see
    /// [`HitPolicy::Serve`](crate::HitPolicy::Serve) and
    /// [`TakingOram::take_on_client`](crate::TakingOram::take_on_client).
    pub stash_hits: u64,
    /// Position-map blocks that went to the PLB without a path access, for the same reason.
    pub position_map_stash_hits: u64,
}

impl FrontendTally {
    /// All path accesses.
    pub fn accesses(&self) -> u64 {
        self.data_accesses + self.position_map_accesses + self.remap_accesses
    }
}
