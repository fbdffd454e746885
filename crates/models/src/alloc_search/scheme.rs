//! The ORAM schemes of a search, and the relative cost of their background evictions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An ORAM scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// Path ORAM: each access and each background eviction reads a path and writes it back.
    Path,
    /// RAW ORAM: an access reads a path, and an eviction reads a path and writes it back. The
    /// durable RAW ORAM of volumes has an equal stash.
    Raw {
        /// Number of accesses per scheduled eviction (A).
        evict_period: u32,
    },
}

impl Scheme {
    /// Number of path reads and path writes per access, including the access's share of scheduled
    /// evictions: 2 in Path ORAM, 1 + 2/A in RAW ORAM.
    pub fn paths_per_access(self) -> f64 {
        match self {
            Self::Path => 2.0,
            Self::Raw { evict_period } => 1.0 + 2.0 / f64::from(evict_period),
        }
    }

    /// The cost of background evictions, as a fraction of the paths that are read and written
    /// anyway. Each background eviction reads and writes one path.
    ///
    /// In Path ORAM this is the number of evictions per access. RAW ORAM moves fewer paths per
    /// access, so an eviction weighs more.
    pub fn extra_paths(self, evictions_per_access: f64) -> f64 {
        2.0 * evictions_per_access / self.paths_per_access()
    }

    /// Number of blocks beyond the bound that the stash may hold when an access begins after
    /// `accesses` others. The engine allows for the blocks that wait for the next scheduled
    /// eviction.
    pub(super) fn stash_allowance(self, accesses: u64) -> usize {
        match self {
            Self::Path => 0,
            Self::Raw { evict_period } => (accesses % u64::from(evict_period)) as usize,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("Path ORAM"),
            Self::Raw { evict_period } => write!(f, "RAW ORAM, A = {evict_period}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_background_eviction_weighs_as_much_as_an_access_of_path_oram() {
        assert_eq!(Scheme::Path.extra_paths(0.15), 0.15);
        // 1.4 paths per access, and two per eviction.
        let raw = Scheme::Raw { evict_period: 5 };
        assert!((raw.extra_paths(0.105) - 0.15).abs() < 1e-12);
    }

    #[test]
    fn blocks_wait_for_the_scheduled_eviction_in_raw_oram_alone() {
        let raw = Scheme::Raw { evict_period: 3 };
        let allowed: Vec<_> = (0..5).map(|accesses| raw.stash_allowance(accesses)).collect();
        assert_eq!(allowed, [0, 1, 2, 0, 1]);
        assert_eq!(Scheme::Path.stash_allowance(4), 0);
    }
}
