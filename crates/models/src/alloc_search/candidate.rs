//! A profile that was tried, and what became of it.

use serde::{Deserialize, Serialize};

use super::{Judge, Plan, Profile, Run};

/// Why a profile was taken, or was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It was not in the search: it is there to compare with.
    Compared,
    /// The search went on from here.
    Taken,
    /// Another of the same round is better.
    Passed,
    /// It is no better than what the round began with.
    NoGain,
    /// It needs too many background evictions.
    TooManyEvictions,
    /// It loses too much space, and was not run.
    TooMuchSpace,
    /// It was taken, and on the last tree one before it does better.
    NotOnLastTree,
}

/// A profile that was tried.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// The profile.
    pub profile: Profile,
    /// Why it was taken, or was not.
    pub verdict: Verdict,
    /// Its runs: none if it was not run.
    pub runs: Vec<Run>,
}

impl Candidate {
    /// Background evictions for each access, over all runs. `None` when it was not run, or a run
    /// had too many to go on.
    pub fn evictions_per_access(&self) -> Option<f64> {
        let accesses: u64 = self.runs.iter().map(|run| run.accesses).sum();
        let evictions: u64 = self.runs.iter().map(|run| run.evictions).sum();
        (accesses > 0 && !self.ran_away()).then(|| evictions as f64 / accesses as f64)
    }

    /// Whether any run had too many background evictions to go on.
    pub fn ran_away(&self) -> bool {
        self.runs.iter().any(|run| run.ran_away)
    }

    /// The most blocks that were left in the stash of any run.
    pub fn stash_blocks_peak(&self) -> Option<usize> {
        self.runs.iter().map(|run| run.stash_blocks_peak).max()
    }

    /// What a search by slots makes small: the slots in storage that an access moves, read and written, its
    /// share of all evictions included.
    pub fn slots_per_access<J: Judge>(&self, plan: &Plan<J>) -> Option<f64> {
        self.evictions_per_access().map(|evictions| plan.slots_moved(&self.profile, evictions))
    }

    /// Cycles for each record, over all runs. `None` when no time was taken.
    pub fn cycles_per_record(&self) -> Option<f64> {
        let times = || self.runs.iter().filter_map(|run| run.time);
        let records: u64 = times().map(|time| time.records).sum();
        let cycles: u64 = times().map(|time| time.cycles).sum();
        (records > 0).then(|| cycles as f64 / records as f64)
    }

    /// What the search of `plan` makes small.
    pub fn cost<J: Judge>(&self, plan: &Plan<J>) -> Option<f64> {
        match plan.judge.channels() {
            None => self.slots_per_access(plan),
            Some(_) => self.cycles_per_record(),
        }
    }

    /// The part of the slots of each level that hold a block, over all runs. Empty when there were
    /// none, or they did not look.
    pub fn utilisation(&self) -> Vec<f64> {
        if self.runs.iter().all(|run| run.blocks_on_levels.is_empty()) {
            return Vec::new();
        }
        let on_level = |level: usize| {
            self.runs.iter().filter_map(|run| run.blocks_on_levels.get(level)).sum::<u64>() as f64
        };
        let slots = self.profile.slots().iter().enumerate();
        slots
            .map(|(level, z)| {
                let in_all_runs = f64::from(*z) * self.runs.len() as f64;
                on_level(level) / (in_all_runs * 2f64.powi(level as i32))
            })
            .collect()
    }
}
