//! Traffic, encryption and stash of RAW ORAM for each Z and A (Tiny ORAM, section IV-B, Fig. 6).
//!
//! ```text
//!  Z, A ──► formulas of the paper ────────────────────────┐
//!      ├──► the engine over a store that counts its pieces ├──► figures, with both side by side
//!      └──► the engine over a tree of tags: its stash ─────┘
//! ```
//!
//! The paper draws its formulas for settings "that have been shown to give negligible stash
//! overflow probability". This experiment counts the engine's traffic, and measures its stash, for
//! each setting.

mod counted;
mod figures;
mod formula;
mod results;

pub use counted::Counted;
pub use results::{Results, SettingResult};

use std::num::NonZeroUsize;

use oblivio_core::{Geometry, RawConfig, TreeConfig};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::experiment::named_json;
use crate::report::Figure;
use crate::stash_study::{Run, STASH_BLOCKS_SEEN_MAX, measure_raw};
use crate::{Experiment, Host, LabError, Workload, workers};
use figures::figures;

/// The values of Z and A. The paper's plot has no numbers, so we chose them around the largest A
/// for which Ring ORAM's analysis, which the paper cites, bounds the stash.
pub const SETTINGS: [RawTrafficSetting; 9] = [
    RawTrafficSetting { z: 3, a: 1 },
    RawTrafficSetting { z: 3, a: 2 },
    RawTrafficSetting { z: 4, a: 3 },
    RawTrafficSetting { z: 4, a: 4 },
    RawTrafficSetting { z: 5, a: 4 },
    RawTrafficSetting { z: 5, a: 5 },
    RawTrafficSetting { z: 6, a: 6 },
    RawTrafficSetting { z: 8, a: 8 },
    RawTrafficSetting { z: 16, a: 20 },
];

/// RAW ORAM with `z` slots per bucket and an eviction every `a` accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTrafficSetting {
    /// Slots per bucket (Z).
    pub z: u16,
    /// Accesses per eviction (A).
    pub a: u32,
}

/// The parameters of the experiment, which determine the results exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTrafficPlan {
    /// The level of the leaves of the tree whose traffic is counted. Counts are means over buckets,
    /// and equal in all trees.
    pub counted_leaf_level: u8,
    /// Accesses whose traffic is counted.
    pub counted_accesses: u64,
    /// The level of the leaves of the tree whose stash is measured.
    pub stash_leaf_level: u8,
    /// Accesses of each setting in the measurement of the stash, over all runs.
    pub stash_accesses: u64,
    /// Independent runs of each setting.
    pub runs: u32,
    /// The seed of all random choices.
    pub seed: u64,
}

impl RawTrafficPlan {
    /// A plan that takes a few minutes.
    pub fn full() -> Self {
        Self {
            counted_leaf_level: 10,
            counted_accesses: 20_000,
            stash_leaf_level: 14,
            stash_accesses: 20_000_000,
            runs: 10,
            seed: 1,
        }
    }

    /// A plan with small trees, for rough tails.
    pub fn quick() -> Self {
        Self {
            counted_leaf_level: 6,
            counted_accesses: 2000,
            stash_leaf_level: 6,
            stash_accesses: 2_000_000,
            runs: 4,
            ..Self::full()
        }
    }

    /// The total number of runs that measure the stash.
    fn steps(&self) -> u64 {
        SETTINGS.len() as u64 * u64::from(self.runs)
    }
}

impl RawTrafficSetting {
    /// A tree with `A / 2` blocks per leaf, the load of Ring ORAM's analysis.
    fn config(self, leaf_level: u8, block_bytes: usize) -> Result<RawConfig, LabError> {
        let capacity = ((u64::from(self.a) << leaf_level) / 2).max(1);
        let geometry = Geometry::uniform(leaf_level, self.z)?;
        let tree = TreeConfig::new(capacity, block_bytes, geometry, STASH_BLOCKS_SEEN_MAX);
        Ok(RawConfig::of_tree(tree, self.a))
    }
}

impl Experiment for RawTrafficPlan {
    const NAME: &'static str = "raw-traffic";
    const STEPS: &'static str = "runs";
    type Record = ();
    type Results = Results;

    fn run(
        self,
        _: &[()],
        threads: NonZeroUsize,
        host: &impl Host<()>,
    ) -> Result<Results, LabError> {
        if self.runs < 2 {
            return Err(LabError::Plan("a confidence interval needs at least 2 runs".to_owned()));
        }
        host.planned(self.steps());
        let mut seeds = StdRng::seed_from_u64(self.seed);
        let (level, accesses) = (self.counted_leaf_level, self.counted_accesses);
        let path = counted::of_path(level, accesses, seeds.next_u64())?;
        let counted = SETTINGS.iter().map(|setting| {
            let config = setting.config(level, counted::BLOCK_BYTES)?;
            counted::of_raw(&config, accesses, seeds.next_u64())
        });
        let counted: Vec<_> = counted.collect::<Result<_, LabError>>()?;

        let each = SETTINGS.iter().flat_map(|setting| (0..self.runs).map(|_| *setting));
        let tasks: Vec<_> = each.map(|setting| (setting, seeds.next_u64())).collect();
        let accesses = self.stash_accesses.div_ceil(self.runs.into());
        let runs = workers::run_all(&tasks, threads, |(setting, seed)| {
            let config = setting.config(self.stash_leaf_level, 0)?;
            let run = measure_raw(&config, Workload::Scan, accesses, *seed, &|_| ())?;
            host.made(1);
            Ok::<Run, LabError>(run)
        })?;
        let mut runs = runs.into_iter();
        let settings = SETTINGS.into_iter().zip(counted).map(|(setting, counted)| {
            let runs = runs.by_ref().take(self.runs as usize).collect();
            SettingResult { setting, counted, runs }
        });
        let settings = settings.collect();
        Ok(Results { plan: self, path, settings })
    }

    fn to_json(results: &Results) -> Result<String, LabError> {
        named_json::<Self>(results)
    }

    fn figures(results: &Results) -> Vec<Figure> {
        figures(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{assert_survive_their_file, results_of};
    use crate::report::{Plot, Verdict, section};

    fn results() -> Results {
        let plan = RawTrafficPlan { stash_accesses: 400_000, ..RawTrafficPlan::quick() };
        results_of(plan, 2).unwrap()
    }

    #[test]
    fn the_engine_transfers_what_the_formulas_give() {
        let results = results();
        assert_eq!(results.path.units, 2.0 * 5.0, "a path of Z = 4, read and written");
        for SettingResult { setting, counted, .. } in &results.settings {
            let formula = formula::memory(*setting);
            assert!((counted.units / formula - 1.0).abs() < 0.01, "{setting:?} {counted:?}");
            // Our headers are smaller than blocks, so bytes are fewer than units of 64.
            assert!(counted.bytes < counted.units * 64.0, "{counted:?}");
            assert!(
                counted.aes_blocks * 2.0 < results.path.aes_blocks || setting.a < 3,
                "{setting:?}"
            );
        }
    }

    #[test]
    fn figures_show_formula_and_count_and_survive_their_file() {
        let results = results();
        assert_survive_their_file::<RawTrafficPlan>(&results);
        let figures = figures(&results);
        let Plot::Bars(memory) = &figures[0].plot else { panic!("bars") };
        assert_eq!(memory.labels[5], "Z5 A5");
        let bar = |series: usize| memory.series[series].values[5].unwrap();
        assert!((bar(0) - 0.94).abs() < 1e-9 && (bar(1) - bar(0)).abs() < 0.01, "{memory:?}");
        assert_eq!(figures[0].verdict(), Verdict::Agrees, "{}", section(&figures[0]));
        let refused = results_of(RawTrafficPlan { runs: 1, ..RawTrafficPlan::quick() }, 1);
        assert!(matches!(refused, Err(LabError::Plan(_))));
    }
}
