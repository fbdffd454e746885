//! Counters of ρ.

/// Counters since ρ was made. Secret, except for [`Self::rounds`], which storage sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RhoTally {
    /// Accesses to the small tree for requests and insertions, including accesses that find
    /// nothing.
    pub small_accesses: u64,
    /// Dummy accesses to the small tree.
    pub small_dummies: u64,
    /// Path accesses to the main tree for requests, for data or for the position map.
    pub main_accesses: u64,
    /// Dummy path accesses to the main tree.
    pub main_dummies: u64,
    /// Requests for a block in the array.
    pub hits: u64,
    /// Requests for a block not in the array.
    pub misses: u64,
    /// Blocks put into the small tree: taken out of the main ORAM for a write, or put back by the
    /// caller that had taken them out.
    pub inserted: u64,
    /// Victims of the array returned to the main ORAM.
    pub put_back: u64,
}

impl RhoTally {
    /// Number of rounds; each ends with an access to the main tree. Public.
    pub fn rounds(&self) -> u64 {
        self.main_accesses + self.main_dummies
    }
}
