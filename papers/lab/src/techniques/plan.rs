//! The parameters of a table.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::LabError;
use oblivio_models::paper::{PAPER_SLOTS, PAPER_TREE_TOP_LEVELS, paper_tree_top_levels};

/// The parameters of the table. With the traces, they determine the results exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TechniquesPlan {
    /// The level of the leaves (L) of Path ORAM's trees. RAW ORAM's tree for the same blocks has
    /// another level.
    pub leaf_level: u8,
    /// The number of blocks of 64 bytes (N): half of the number of slots.
    pub capacity: u64,
    /// The stash bound of Path ORAM. If the stash has more blocks, background evictions precede the
    /// next request. RAW ORAM has Tiny ORAM's bound of 64.
    pub stash_blocks_max: usize,
    /// Number of levels on the client with which paths in storage are as long as in the paper.
    pub tree_top_levels: u8,
    /// Number of levels on the client with which the client holds as many blocks as in the paper.
    pub large_tree_top_levels: u8,
    /// Blocks of the direct-mapped PLB.
    pub plb_blocks: usize,
    /// The maximum number of position-map entries in client memory. It is so small that two levels
    /// of the map lie in the tree.
    pub client_entries_max: u64,
    /// Blocks of the LLC, in sets of 8, in rows with an LLC.
    pub llc_blocks: usize,
    /// Blocks of the small tree of ρ.
    pub rho_blocks: u64,
    /// Requests before counting starts, after a scan that fills the tree.
    pub warm_up: u64,
    /// Requests that are counted.
    pub requests: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The minimum level of the leaves. Such a tree still has levels on the client, with
/// `large_tree_top_levels`, and levels in storage.
const LEAF_LEVEL_MIN: u8 = 8;

/// The maximum level of the leaves. Such a tree takes several gigabytes of memory.
const LEAF_LEVEL_MAX: u8 = 20;

/// The minimum number of levels in storage.
const STORAGE_LEVELS_MIN: u8 = 6;

/// Allowed numbers of requests. Fewer give no meaningful result, and more take days.
const REQUESTS: std::ops::RangeInclusive<u64> = 1000..=1_000_000_000;

/// Labels per position-map block.
const FAN_OUT: u64 = 32;

impl TechniquesPlan {
    /// The parameters for trees with leaves on `leaf_level`, with `requests` requests per row and
    /// workload.
    ///
    /// Caches are the same fractions of the blocks as in the paper: the LLC a 2048th, the small
    /// tree of ρ a 256th. The PLB is a 4096th, which is larger than the paper's, so that it holds
    /// more than a few blocks.
    pub fn new(leaf_level: u8, requests: u64) -> Self {
        let capacity = u64::from(PAPER_SLOTS) << leaf_level.min(LEAF_LEVEL_MAX);
        Self {
            leaf_level,
            capacity,
            stash_blocks_max: 100,
            tree_top_levels: paper_tree_top_levels(leaf_level),
            large_tree_top_levels: PAPER_TREE_TOP_LEVELS
                .min((leaf_level + 1).saturating_sub(STORAGE_LEVELS_MIN)),
            plb_blocks: (capacity as usize / 4096).max(8),
            client_entries_max: capacity.div_ceil(FAN_OUT * FAN_OUT),
            llc_blocks: (capacity as usize / 2048).max(16),
            rho_blocks: (capacity / 256).max(64),
            warm_up: requests / 2,
            requests,
            seed: 1,
        }
    }

    /// The plan of the table in the documentation.
    pub fn full() -> Self {
        Self::new(16, 100_000)
    }

    /// A plan for rough figures, with a small tree and few requests.
    pub fn quick() -> Self {
        Self::new(10, 3000)
    }

    /// The number of requests of one run, including those that are not counted.
    pub(super) fn requests_per_run(&self) -> u64 {
        self.capacity + self.warm_up + self.requests
    }

    /// Derives a seed for each of `workloads` workloads, which is the same for all rows.
    pub(super) fn seeds(&self, workloads: usize) -> Vec<u64> {
        let mut seeds = StdRng::seed_from_u64(self.seed);
        (0..workloads).map(|_| seeds.next_u64()).collect()
    }

    pub(super) fn check(&self) -> Result<(), LabError> {
        let refuse = |message: String| Err(LabError::Plan(message));
        if !(LEAF_LEVEL_MIN..=LEAF_LEVEL_MAX).contains(&self.leaf_level) {
            return refuse(format!(
                "trees for techniques need leaves on level {LEAF_LEVEL_MIN} to \
                 {LEAF_LEVEL_MAX}"
            ));
        }
        if !REQUESTS.contains(&self.requests) {
            let (least, most) = (REQUESTS.start(), REQUESTS.end());
            return refuse(format!(
                "a run needs {least} to {most} requests: choose other \
                                   --requests"
            ));
        }
        Ok(())
    }
}
