//! What an ORAM did.

use super::CacheTally;
use super::rho::RhoTally;

/// What an ORAM did since it was made, part by part. Secret, but for the sum of the accesses, which storage
/// sees, and for what follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The front end; of ρ, that of the main tree.
    pub front: FrontTally,
    /// AES blocks computed, over all trees. Public: it depends on the number of accesses alone.
    pub aes_blocks: u64,
    /// ρ, where there is one.
    pub rho: Option<RhoTally>,
    /// The cache, where there is one.
    pub cache: Option<CacheTally>,
}

impl Counters {
    /// Those of a front end with nothing before it.
    pub(super) fn new(front: FrontTally, aes_blocks: u64) -> Self {
        Self { front, aes_blocks, rho: None, cache: None }
    }
}

/// Counters of one front end since it was made. Secret, but for the sum of the accesses, which
/// storage sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontTally {
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
    /// [`Front::take_on_client`](super::Front::take_on_client).
    pub stash_hits: u64,
    /// Position-map blocks that went to the PLB without a path access, for the same reason.
    pub position_map_stash_hits: u64,
}

impl FrontTally {
    /// All path accesses.
    pub fn accesses(&self) -> u64 {
        self.data_accesses + self.position_map_accesses + self.remap_accesses
    }
}
