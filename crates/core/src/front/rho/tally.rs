//! What ρ did.

/// Counters since it was made. Secret, but for [`Self::rounds`], which storage sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RhoTally {
    /// Accesses to the small tree that were needed.
    pub small_accesses: u64,
    /// Accesses to the small tree that were not.
    pub small_dummies: u64,
    /// Path accesses to the main tree that were needed, for data or for the position map.
    pub main_accesses: u64,
    /// Path accesses to the main tree that were not.
    pub main_dummies: u64,
    /// Requests for a block that was in the array.
    pub hits: u64,
    /// Requests for one that was not.
    pub misses: u64,
    /// Blocks that were put into the small tree: taken out of the main ORAM to be written, or put back
    /// by whoever had taken them.
    pub inserted: u64,
    /// Victims of the array that went back to the main ORAM.
    pub put_back: u64,
}

impl RhoTally {
    /// Rounds: each ends with an access to the main tree. Public.
    pub fn rounds(&self) -> u64 {
        self.main_accesses + self.main_dummies
    }
}
