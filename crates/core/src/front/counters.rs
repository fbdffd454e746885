//! Counters of ORAMs.

use super::CacheTally;
use super::rho::RhoTally;

/// Counters of an ORAM since it was made, by component. Secret, except for the number of accesses,
/// which storage sees, and numbers derived from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Counters of the front end. With ρ, counters of the front end of the main tree.
    pub front: FrontTally,
    /// AES blocks computed, over all trees. Public: depends only on the number of accesses.
    pub aes_blocks: u64,
    /// Counters of ρ, if present.
    pub rho: Option<RhoTally>,
    /// Counters of the cache, if present.
    pub cache: Option<CacheTally>,
}

impl Counters {
    /// The counters of a front end without ρ or cache.
    pub(super) fn new(front: FrontTally, aes_blocks: u64) -> Self {
        Self { front, aes_blocks, rho: None, cache: None }
    }
}

/// Counters of one front end since it was made. Secret, except for the number of accesses, which
/// storage sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontTally {
    /// Path accesses for requested blocks: one per request that is not a stash hit.
    pub data_accesses: u64,
    /// Path accesses that fetched a block of the position map.
    pub position_map_accesses: u64,
    /// Path accesses that moved a block because the counters of its group, which are in one
    /// position-map block, were reset.
    pub remap_accesses: u64,
    /// Requests for which a position-map block was found in the PLB, the client's cache of such
    /// blocks.
    pub plb_hits: u64,
    /// Requests served without a path access, because the block was on the client: see
    /// [`HitPolicy::Serve`](crate::HitPolicy::Serve) and
    /// [`Front::take_on_client`](super::Front::take_on_client).
    pub stash_hits: u64,
    /// Position-map blocks that moved into the PLB without a path access, because they were in the
    /// stash or in the tree top on the client.
    pub position_map_stash_hits: u64,
}

impl FrontTally {
    /// The number of all path accesses.
    pub fn accesses(&self) -> u64 {
        self.data_accesses + self.position_map_accesses + self.remap_accesses
    }
}
