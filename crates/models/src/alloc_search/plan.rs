//! The parameters of a search.

use oblivio_core::scheme::{EVICT_PERIOD_MAX, TREE_TOP_LEVELS_MAX};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{BySlots, Judge, Profile, Scheme};
use crate::Error;
use crate::paper::{PAPER_SLOTS, PAPER_TREE_TOP_LEVELS, paper_tree_top_levels};
use crate::workload::Workload;

/// The parameters of a search. They determine the results to the last bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "J: Judge")]
pub struct SearchPlan<J = BySlots> {
    /// The cost by which the search compares profiles.
    #[serde(default, skip_serializing_if = "is_by_slots")]
    pub judge: J,
    /// The scheme of the ORAM that runs the profiles.
    pub scheme: Scheme,
    /// The level of the leaves (L).
    pub leaf_level: u8,
    /// Slots per bucket of the uniform tree (Z).
    pub slots: u16,
    /// Number of levels, from the root on, that the client keeps. The search does not change their
    /// buckets.
    pub tree_top_levels: u8,
    /// Slots of a path in storage on levels that the search does not change. An access moves these
    /// slots as well.
    pub path_slots_beside: u64,
    /// Number of blocks (N).
    pub capacity: u64,
    /// The bound on the stash (C). If the stash holds more blocks, background evictions precede the
    /// next access.
    pub stash_blocks_max: usize,
    /// The sequence of accessed addresses.
    pub workload: Workload,
    /// Maximum fraction of all slots that a profile may give up.
    pub space_loss_max: f64,
    /// Maximum additional cost of background evictions compared with the uniform tree, as a
    /// fraction of the paths that accesses move anyway: see [`Scheme::extra_paths`].
    pub extra_evictions_max: f64,
    /// Passes over all addresses before counting starts. The first pass fills the tree. A search by
    /// time ignores this.
    pub warm_up_passes: u64,
    /// Accesses counted per profile, over all of its runs. In a search by time: number of trace
    /// records.
    pub accesses: u64,
    /// Number of independent runs per profile.
    pub runs: u32,
    /// Leaf level of the last tree: the tree on which the found profile must keep to the limits,
    /// too. If it is deeper than the searched tree by `n` levels, the client keeps `n` more levels
    /// of it.
    pub endurance_leaf_level: u8,
    /// Accesses counted in the run on the last tree. In a search by time: number of trace records.
    pub endurance_accesses: u64,
    /// The seed of all randomness.
    pub seed: u64,
}

/// The leaf level of the deepest tree that a search builds in memory. That tree takes some
/// gigabytes.
const LEAF_LEVEL_MAX: u8 = 24;

/// Allowed leaf levels in a search by time, whose trees have no contents: up to one level more than
/// the paper's.
const TIMED_LEAF_LEVELS: std::ops::RangeInclusive<u8> = 8..=25;

/// Minimum number of levels on the client in a search by time, if the tree is deep enough. With
/// fewer levels, IR-Stash has no effect.
const TREE_TOP_LEVELS_MIN: u8 = 4;

/// Maximum slots per bucket. A search over more slots takes too long.
const SLOTS_MAX: u16 = 16;

/// Minimum accesses per run. A shorter run measures nothing useful.
const ACCESSES_PER_RUN_MIN: u64 = 1000;

/// Upper bound on the space lost by the paper's profiles, as stated in the paper.
const PAPER_SPACE_LOSS_MAX: f64 = 0.01;

/// Maximum number of runs. More runs would not reduce any error that matters.
const RUNS_MAX: u32 = 10_000;

fn is_by_slots<J: Judge>(judge: &J) -> bool {
    judge.channels().is_none()
}

/// Number of trace records that a run by time executes: a warm-up, then `records` counted records.
/// The warm-up is a quarter as long.
pub fn all_records(records: u64) -> u64 {
    records + records / 4
}

impl<J: Judge> SearchPlan<J> {
    /// Returns a search like the paper's on a tree with leaves on `leaf_level`: Z = 4, half of all
    /// slots in use, and a stash of 200 entries, 100 of which are reserved for a path in flight.
    pub fn like_the_paper(leaf_level: u8) -> Self {
        let plan = Self {
            judge: J::default(),
            scheme: Scheme::Path,
            leaf_level,
            slots: PAPER_SLOTS,
            tree_top_levels: 0,
            path_slots_beside: 0,
            capacity: 0,
            stash_blocks_max: 100,
            workload: Workload::Uniform,
            space_loss_max: 0.01,
            extra_evictions_max: 0.15,
            warm_up_passes: 3,
            accesses: 500_000,
            runs: 2,
            endurance_leaf_level: leaf_level,
            endurance_accesses: 1_000_000,
            seed: 1,
        };
        plan.on_tree(leaf_level)
    }

    /// Changes the search to a tree with leaves on `leaf_level`, which is also the last tree. The
    /// tree gets four blocks per leaf (half of the slots if Z = 4), and the client keeps the
    /// paper's share of levels.
    pub fn on_tree(self, leaf_level: u8) -> Self {
        let tree_top_levels = paper_tree_top_levels(leaf_level);
        let endurance_leaf_level = leaf_level;
        Self { leaf_level, tree_top_levels, endurance_leaf_level, ..self }.with_load(4.0)
    }

    /// Changes the search to simulated time, with one run of `records` records per profile. The
    /// client keeps as many levels as in the simulated machines of the lab's evaluation.
    pub fn by_time(self, judge: J, records: u64) -> Self {
        let most = PAPER_TREE_TOP_LEVELS.min(self.leaf_level / 2);
        Self {
            judge,
            tree_top_levels: self.tree_top_levels.clamp(TREE_TOP_LEVELS_MIN.min(most), most),
            accesses: records,
            runs: 1,
            endurance_accesses: records,
            ..self
        }
    }

    /// Changes the load to `blocks_per_leaf` blocks per leaf.
    pub fn with_load(self, blocks_per_leaf: f64) -> Self {
        // NaN and out-of-range values become 0 or the largest integer, and `check` refuses them.
        let capacity = (blocks_per_leaf * 2f64.powi(self.leaf_level.into())).round() as u64;
        Self { capacity, ..self }
    }

    /// Returns this search on the last tree, with an equal number of blocks per leaf.
    pub(super) fn on_last_tree(&self) -> Self {
        let deeper = self.endurance_leaf_level - self.leaf_level;
        Self {
            leaf_level: self.endurance_leaf_level,
            tree_top_levels: self.tree_top_levels + deeper,
            capacity: self.capacity << deeper,
            ..self.clone()
        }
    }

    /// The uniform tree that the search starts from.
    pub fn uniform(&self) -> Profile {
        Profile::uniform(self.leaf_level, self.slots)
    }

    /// Number of slots in storage that an access reads and writes on `profile`, given the
    /// background evictions per access.
    pub(super) fn slots_moved(&self, profile: &Profile, evictions_per_access: f64) -> f64 {
        let path_slots = (profile
            .path_slots(self.tree_top_levels)
            .saturating_add(self.path_slots_beside)) as f64;
        let extra = self.scheme.extra_paths(evictions_per_access);
        path_slots * self.scheme.paths_per_access() * (1.0 + extra)
    }

    /// Number of steps per profile, over all runs and including the warm-up. A step is an access
    /// or, in a search by time, a record.
    pub(super) fn accesses_per_profile(&self) -> u64 {
        self.steps_of_run(self.accesses_per_run()) * u64::from(self.runs)
    }

    /// Number of steps of a run that counts `accesses` steps, including the warm-up.
    pub(super) fn steps_of_run(&self, accesses: u64) -> u64 {
        match self.judge.channels() {
            None => accesses + self.warm_up_accesses(),
            Some(_) => all_records(accesses),
        }
    }

    /// Number of accesses of each run before counting starts.
    pub(super) fn warm_up_accesses(&self) -> u64 {
        self.capacity * self.warm_up_passes
    }

    pub(super) fn accesses_per_run(&self) -> u64 {
        self.accesses.div_ceil(u64::from(self.runs.max(1)))
    }

    /// The maximum fraction of slots that any profile run by the search gives up.
    fn space_loss_most(&self) -> f64 {
        self.space_loss_max.max(PAPER_SPACE_LOSS_MAX)
    }

    /// The load of the tree: `N / 2^L`.
    pub fn blocks_per_leaf(&self) -> f64 {
        self.capacity as f64 / 2f64.powi(self.leaf_level.into())
    }

    /// Returns one seed per run of a profile (equal for all profiles), and one seed for the run on
    /// the last tree.
    pub(super) fn seeds(&self) -> (Vec<u64>, u64) {
        let mut seeds = StdRng::seed_from_u64(self.seed);
        let last = seeds.next_u64();
        ((0..self.runs).map(|_| seeds.next_u64()).collect(), last)
    }

    /// Checks the parameters that a search by time prescribes: Path ORAM, uniform requests, and a
    /// whole tree that is also the last tree.
    fn check_by_time(&self) -> Result<(), Error> {
        let refuse = |message: &str| Err(Error::Plan(message.to_owned()));
        if (self.scheme, self.workload) != (Scheme::Path, Workload::Uniform) {
            return refuse(
                "a search by time needs Path ORAM and uniformly random requests: omit --workload, \
                 or judge by slots",
            );
        }
        if self.endurance_leaf_level != self.leaf_level || self.path_slots_beside > 0 {
            return refuse("a search by time must search a whole tree and end on the same tree");
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |message: String| Err(Error::Plan(message));
        let is_by_time = self.judge.channels().is_some();
        let levels = if is_by_time { TIMED_LEAF_LEVELS } else { 1..=LEAF_LEVEL_MAX };
        if !levels.contains(&self.leaf_level) {
            let (least, most) = (levels.start(), levels.end());
            return refuse(format!("the leaf level of a searched tree must be {least} to {most}"));
        }
        if is_by_time {
            self.check_by_time()?;
        } else if !(self.leaf_level..=LEAF_LEVEL_MAX).contains(&self.endurance_leaf_level) {
            return refuse(format!(
                "the last tree must be at least as deep as the searched one, with leaves on level \
                 {LEAF_LEVEL_MAX} at most"
            ));
        }
        if let Scheme::Raw { evict_period } = self.scheme
            && !(1..=EVICT_PERIOD_MAX).contains(&evict_period)
        {
            return refuse(format!("the eviction period must be 1 to {EVICT_PERIOD_MAX} accesses"));
        }
        let deeper = self.endurance_leaf_level - self.leaf_level;
        let top_max = (TREE_TOP_LEVELS_MAX - deeper.min(TREE_TOP_LEVELS_MAX)).min(self.leaf_level);
        if self.tree_top_levels > top_max {
            return refuse(format!("the client can keep at most {top_max} levels of this tree"));
        }
        if !(2..=SLOTS_MAX).contains(&self.slots) {
            return refuse(format!("a searched tree must have 2 to {SLOTS_MAX} slots per bucket"));
        }
        if self.warm_up_passes == 0 || self.warm_up_passes > 1000 {
            return refuse("the warm-up must be 1 to 1000 passes".into());
        }
        if !(1..=RUNS_MAX).contains(&self.runs) {
            return refuse(format!("a profile needs 1 to {RUNS_MAX} runs"));
        }
        if self.accesses_per_run() < ACCESSES_PER_RUN_MIN {
            return refuse(format!("a run needs at least {ACCESSES_PER_RUN_MIN} accesses"));
        }
        if !(0.0..1.0).contains(&self.space_loss_max) {
            return refuse("the space limit must be a fraction below 1, such as 0.01".into());
        }
        let slots_least = self.uniform().tree_slots() * (1.0 - self.space_loss_most());
        if self.capacity == 0 || self.capacity as f64 > slots_least {
            return refuse(format!(
                "the load must be above 0 blocks per leaf, and fit the {slots_least:.0} slots that \
                 remain after the space loss"
            ));
        }
        if !(0.0..=100.0).contains(&self.extra_evictions_max) {
            return refuse(
                "the eviction limit must be 0 to 100 paths per path of accesses, such as 0.15"
                    .into(),
            );
        }
        Ok(())
    }
}
