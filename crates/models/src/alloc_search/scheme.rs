//! Which ORAM judges a profile, and what its background evictions weigh.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An ORAM scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// Path ORAM: an access reads a path and writes it back, and so does a background eviction.
    Path,
    /// RAW ORAM, and the rotating RAW ORAM of volumes, whose stash is the same: an access reads a path,
    /// an eviction reads one and writes it back.
    Raw {
        /// Accesses between evictions (A).
        evict_period: u32,
    },
}

impl Scheme {
    /// How many paths an access reads and writes, its share of the scheduled evictions included: 2,
    /// and 1 + 2/A in RAW ORAM.
    pub fn paths_per_access(self) -> f64 {
        match self {
            Self::Path => 2.0,
            Self::Raw { evict_period } => 1.0 + 2.0 / f64::from(evict_period),
        }
    }

    /// What background evictions add, as a part of the paths that are read and written anyway. Each
    /// reads one and writes one.
    ///
    /// In Path ORAM that is their number for each access. RAW ORAM has so few paths an access that
    /// the same number weighs more.
    pub fn extra_paths(self, evictions_per_access: f64) -> f64 {
        2.0 * evictions_per_access / self.paths_per_access()
    }

    /// How many blocks beyond the bound may be in the stash when an access begins that comes after
    /// `accesses` others. The engine allows for those that wait for the scheduled eviction.
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
        // 1.4 paths an access, and two for an eviction.
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
