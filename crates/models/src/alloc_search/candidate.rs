//! A profile that the search tried, with its runs and verdict.

use serde::{Deserialize, Serialize};

use super::{Judge, Profile, Run, SearchPlan};

/// The reason why the search took or rejected a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The profile was measured for comparison only.
    #[serde(rename = "Compared")]
    ComparisonOnly,
    /// The profile was the best of its round, so the search continued from it.
    Taken,
    /// Another profile of the same round was better.
    #[serde(rename = "Passed")]
    NotBest,
    /// The profile is no better than the one at the start of the round.
    NoGain,
    /// The profile needs too many background evictions.
    TooManyEvictions,
    /// The profile loses too much space. It was not run.
    TooMuchSpace,
    /// The profile was taken at first, but exceeded the limits on the last tree, or an earlier
    /// profile was better there.
    NotOnLastTree,
}

/// A profile that the search tried.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Candidate {
    /// The profile's name in reports.
    pub name: String,
    /// The profile.
    pub profile: Profile,
    /// The verdict of the search.
    pub verdict: Verdict,
    /// The runs with this profile. Empty if it was not run.
    pub runs: Vec<Run>,
}

impl Candidate {
    /// Background evictions per access, over all runs. `None` if the profile was not run, or a run
    /// stopped because of too many evictions.
    pub fn evictions_per_access(&self) -> Option<f64> {
        let accesses: u64 = self.runs.iter().map(|run| run.accesses).sum();
        let evictions: u64 = self.runs.iter().map(|run| run.evictions).sum();
        (accesses > 0 && !self.ran_away()).then(|| evictions as f64 / accesses as f64)
    }

    /// Whether any run stopped because of too many background evictions.
    pub fn ran_away(&self) -> bool {
        self.runs.iter().any(|run| run.ran_away)
    }

    /// The maximum number of blocks left in the stash, over all runs. `None` if the profile was not
    /// run.
    pub fn stash_blocks_peak(&self) -> Option<usize> {
        self.runs.iter().map(|run| run.stash_blocks_peak).max()
    }

    /// The cost in a search by slots: the number of slots in storage read and written per access,
    /// including the access's share of all evictions. `None` if the profile was not run, or a run
    /// stopped because of too many evictions.
    pub fn slots_per_access<J: Judge>(&self, plan: &SearchPlan<J>) -> Option<f64> {
        self.evictions_per_access().map(|evictions| plan.slots_moved(&self.profile, evictions))
    }

    /// Cycles per record, over all runs. `None` if no run measured time.
    pub fn cycles_per_record(&self) -> Option<f64> {
        let times = || self.runs.iter().filter_map(|run| run.time);
        let records: u64 = times().map(|time| time.records).sum();
        let cycles: u64 = times().map(|time| time.cycles).sum();
        (records > 0).then(|| cycles as f64 / records as f64)
    }

    /// The cost that the search of `plan` minimizes. `None` if it was not measured.
    pub fn cost<J: Judge>(&self, plan: &SearchPlan<J>) -> Option<f64> {
        match plan.judge.channels() {
            None => self.slots_per_access(plan),
            Some(_) => self.cycles_per_record(),
        }
    }

    /// The fraction of slots that hold a block, by level, over all runs. Empty if no run counted
    /// blocks by level.
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
