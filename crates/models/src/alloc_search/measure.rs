//! One run of a profile on the engine, under a workload, with background evictions.

use oblivio_core::scheme;
use oblivio_core::{
    Access, FlatOram, Front, MemoryStore, NoSecrecy, Op, Oram, PathOram, RawConfig, RawOram,
    Sealer, TreeConfig,
};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::{Judge, Profile, Scheme, SearchPlan};
use crate::Error;
use crate::workload::Addresses;

/// Bytes per block. The stash counts blocks, so their size affects only the running time.
const BLOCK_BYTES: usize = 16;

/// Background evictions per access at which a tree counts as too full.
const EVICTIONS_PER_ACCESS_MAX: u64 = 8;

/// Number of accesses over which background evictions are compared with
/// [`EVICTIONS_PER_ACCESS_MAX`].
const ACCESSES_AT_ONCE: u64 = 1 << 12;

/// The simulated time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// Number of processor cycles.
    pub cycles: u64,
    /// Number of records of the trace.
    pub records: u64,
}

/// The measurements of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The seed of all randomness in the run.
    pub seed: u64,
    /// Number of accesses to count; a run that stopped early made fewer. In a run that simulates
    /// time: number of paths for requested blocks and for the position map.
    pub accesses: u64,
    /// Number of background evictions during the counted accesses.
    pub evictions: u64,
    /// Maximum number of background evictions before a single access. 0 in a run that simulates
    /// time.
    pub evictions_at_once_max: u64,
    /// Maximum number of blocks left in the stash after an eviction.
    pub stash_blocks_peak: usize,
    /// Number of blocks on each level at the end, from the root to the leaves. Empty in a run that
    /// simulates time.
    pub blocks_on_levels: Vec<u64>,
    /// Whether the run stopped because of too many background evictions.
    pub ran_away: bool,
    /// The simulated time. `None` if the run only counted evictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

impl Run {
    /// Background evictions per access. `None` if the run stopped because of too many evictions, or
    /// made no access.
    pub fn evictions_per_access(&self) -> Option<f64> {
        (self.accesses > 0 && !self.ran_away).then(|| self.evictions as f64 / self.accesses as f64)
    }
}

/// Runs the warm-up of `plan` and `accesses` counted accesses on `profile`. Checks the invariants
/// of the ORAM at the end. Calls `progress` with the number of accesses since its previous call. A
/// run that stops early also reports the accesses that it skips.
///
/// # Errors
/// [`Error::Engine`] if the engine refuses the plan or fails.
pub fn measure<J: Judge>(
    plan: &SearchPlan<J>,
    profile: &Profile,
    accesses: u64,
    seed: u64,
    progress: &dyn Fn(u64),
) -> Result<Run, Error> {
    let geometry = profile.geometry()?;
    let mut tree = TreeConfig::new(plan.capacity, BLOCK_BYTES, geometry, plan.stash_blocks_max);
    tree.tree_top_levels = plan.tree_top_levels;
    let store = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
    let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let mut coins = StdRng::seed_from_u64(seed);
    let addresses = Addresses::new(plan.workload, plan.capacity, StdRng::from_rng(&mut coins));
    let parameters = RunParameters { plan, addresses, accesses, seed };
    match plan.scheme {
        Scheme::Path => count(PathOram::path(&tree, sealer, store, coins)?, parameters, progress),
        Scheme::Raw { evict_period } => {
            let raw = RawConfig::of_tree(tree, evict_period);
            count(RawOram::raw(&raw, sealer, store, coins)?, parameters, progress)
        }
    }
}

/// The parameters of a run.
struct RunParameters<'a, J> {
    plan: &'a SearchPlan<J>,
    addresses: Addresses,
    accesses: u64,
    seed: u64,
}

fn count<B: scheme::Scheme, J: Judge>(
    oram: FlatOram<B, StdRng>,
    parameters: RunParameters<'_, J>,
    progress: &dyn Fn(u64),
) -> Result<Run, Error> {
    let RunParameters { plan, mut addresses, accesses, seed } = parameters;
    let mut client = Client {
        oram,
        scheme: plan.scheme,
        accesses: 0,
        evictions: 0,
        evictions_at_once_max: 0,
        ran_away: false,
    };
    // The first pass is a scan for any workload, so that all blocks exist.
    client.access_all(&mut Addresses::scan(plan.capacity), plan.capacity, progress)?;
    client.access_all(&mut addresses, plan.warm_up_accesses() - plan.capacity, progress)?;
    client.start_counting();
    client.access_all(&mut addresses, accesses, progress)?;
    client.oram.check_invariants()?;
    Ok(Run {
        seed,
        accesses,
        evictions: client.evictions,
        evictions_at_once_max: client.evictions_at_once_max,
        stash_blocks_peak: client.oram.stash().occupancy().peak_blocks(),
        blocks_on_levels: client.oram.blocks_on_levels()?,
        ran_away: client.ran_away,
        time: None,
    })
}

/// An ORAM, with counters of its accesses and background evictions.
struct Client<B> {
    oram: FlatOram<B, StdRng>,
    scheme: Scheme,
    accesses: u64,
    evictions: u64,
    evictions_at_once_max: u64,
    ran_away: bool,
}

impl<B: scheme::Scheme> Client<B> {
    fn start_counting(&mut self) {
        self.evictions = 0;
        self.evictions_at_once_max = 0;
    }

    /// Accesses `count` addresses, and stops if the tree turns out too full. All accesses are
    /// writes: once all blocks exist, reads and writes leave the same stash behind.
    fn access_all(
        &mut self,
        addresses: &mut Addresses,
        count: u64,
        progress: &dyn Fn(u64),
    ) -> Result<(), Error> {
        let data = [0; BLOCK_BYTES];
        let mut left = count;
        while left > 0 {
            let now = left.min(ACCESSES_AT_ONCE);
            let evictions_max = self.evictions + EVICTIONS_PER_ACCESS_MAX * ACCESSES_AT_ONCE;
            for _ in 0..now {
                self.evict_to_bound(evictions_max)?;
                if self.ran_away {
                    progress(left);
                    return Ok(());
                }
                let access = Access { address: addresses.next_address(), op: Op::Write(&data) };
                self.oram.access(&mut [access])?;
                self.accesses += 1;
            }
            progress(now);
            left -= now;
        }
        Ok(())
    }

    /// Makes background evictions until the stash is within its bound, or `self.evictions` has
    /// reached `evictions_max`.
    fn evict_to_bound(&mut self, evictions_max: u64) -> Result<(), Error> {
        let before = self.evictions;
        let allowance = self.scheme.stash_allowance(self.accesses);
        let stash_blocks_max = self.oram.config().stash_blocks_max + allowance;
        while !self.ran_away && self.oram.stash().blocks() > stash_blocks_max {
            self.oram.evict()?;
            self.evictions += 1;
            self.ran_away = self.evictions == evictions_max;
        }
        self.evictions_at_once_max = self.evictions_at_once_max.max(self.evictions - before);
        Ok(())
    }
}
