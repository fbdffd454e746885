//! The parameters of a study.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::measure::WARM_UP_PASSES;
use super::{Scheme, Setup, Workload};
use crate::LabError;

/// The parameters of the study, which determine the results exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StashStudyPlan {
    /// The setups to measure.
    pub setups: Vec<Setup>,
    /// The order of accesses.
    pub workload: Workload,
    /// Accesses counted for each setup, over all of its runs.
    pub accesses: u64,
    /// The number of independent runs of each setup. It is at least two, since differences between
    /// runs give the confidence interval.
    pub runs: u32,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The parameters of one run of one setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    pub(super) setup: Setup,
    pub(super) workload: Workload,
    /// The number of counted accesses.
    pub(super) accesses: u64,
    pub(super) seed: u64,
}

impl Task {
    /// The total number of accesses of the run, including those before counting starts.
    pub(super) fn all_accesses(&self) -> u64 {
        self.accesses + self.setup.capacity * WARM_UP_PASSES
    }
}

impl StashStudyPlan {
    /// The plan of the study in the documentation. It has loads from light to heavy on one tree.
    /// The lightest loads also run on a tree eight times as large, to test whether the tail depends
    /// on the size.
    pub fn full() -> Self {
        Self {
            setups: setups(10, &[4, 8, 12, 14, 16], &[10, 14, 16, 20])
                .chain(setups(13, &[4, 8], &[10]))
                .collect(),
            workload: Workload::Scan,
            accesses: 100_000_000,
            runs: 16,
            seed: 1,
        }
    }

    /// A plan for rough figures: the lightest and the heaviest load on a smaller tree, with fewer
    /// accesses.
    pub fn quick() -> Self {
        Self {
            setups: setups(8, &[4, 16], &[10, 20]).collect(),
            accesses: 20_000_000,
            runs: 8,
            ..Self::full()
        }
    }

    /// A plan for the tree of Tiny ORAM, with leaves on level 20 (section V-A), at the default
    /// loads. 10^9 accesses per setup decide whether the paper's bounds hold.
    pub fn deep() -> Self {
        Self {
            setups: setups(20, &[4], &[10]).collect(),
            accesses: 1_000_000_000,
            runs: 10,
            ..Self::full()
        }
    }

    /// The total number of accesses of the study, including those before counting starts.
    pub fn total_accesses(&self) -> u64 {
        self.tasks().iter().map(Task::all_accesses).sum()
    }

    pub(super) fn check(&self) -> Result<(), LabError> {
        let refuse = |message: &str| Err(LabError::Plan(message.to_owned()));
        if self.runs < 2 {
            return refuse("a confidence interval needs at least 2 runs: use more seeds");
        }
        if self.accesses / u64::from(self.runs) < ACCESSES_PER_RUN_MIN {
            return Err(LabError::Plan(format!(
                "{} accesses in {} runs are too few for a tail: a run needs {ACCESSES_PER_RUN_MIN}",
                self.accesses, self.runs
            )));
        }
        if self.setups.is_empty() {
            return refuse("the plan has no setups: add one");
        }
        if self.setups.iter().any(|setup| setup.capacity == 0) {
            return refuse("a tree without blocks has no stash: use a capacity of 1 or more");
        }
        Ok(())
    }

    pub(super) fn tasks(&self) -> Vec<Task> {
        let mut seeds = StdRng::seed_from_u64(self.seed);
        let setups = self.setups.iter().flat_map(|setup| (0..self.runs).map(|_| *setup));
        setups
            .map(|setup| Task {
                setup,
                workload: self.workload,
                accesses: self.accesses_per_run(),
                seed: seeds.next_u64(),
            })
            .collect()
    }

    fn accesses_per_run(&self) -> u64 {
        self.accesses.div_ceil(u64::from(self.runs.max(1)))
    }
}

/// The minimum number of accesses per run. With fewer, a run shows no tail.
const ACCESSES_PER_RUN_MIN: u64 = 1000;

/// Both schemes on trees with leaves on `leaf_level`, with loads in quarters of a block per leaf.
fn setups(leaf_level: u8, path: &[u64], raw: &[u64]) -> impl Iterator<Item = Setup> {
    let load = move |scheme, quarters: &u64| Setup {
        scheme,
        leaf_level,
        capacity: (quarters << leaf_level) / 4,
    };
    let path = path.iter().map(move |quarters| load(Scheme::PathZ4, quarters)).collect::<Vec<_>>();
    let raw = raw.iter().map(move |quarters| load(Scheme::RawZ5A5, quarters));
    path.into_iter().chain(raw.collect::<Vec<_>>())
}
