//! The stash study, which measures the required size of the stash.
//!
//! Tiny ORAM states a stash bound `C` for which the stash overflows with probability `2^-80`: 78
//! blocks for Path ORAM with Z = 4, and 64 for RAW ORAM with Z = 5, A = 5. No simulation shows such
//! a rare event. The study measures the probability that more than `n` blocks are left in the
//! stash. That probability falls exponentially with `n`, and a straight line through its logarithms
//! is extrapolated to `2^-80`.
//!
//! The study measures the engine itself, not a model of it. `docs/stash-study.md` in the repository
//! has the results.

mod fit;
mod measure;
mod plan;
mod plot;
mod record;
mod results;
mod setup;
mod survival;
mod table;

pub use fit::{Estimate, TailFit, TailLine};
pub(crate) use measure::measure_raw;
pub use measure::{Run, STASH_BLOCKS_SEEN_MAX};
pub use plan::StashStudyPlan;
pub use record::StashRecord;
pub use results::{SetupResult, Study};
pub use setup::{Scheme, Setup};
pub use survival::Survival;

pub use crate::Workload;

use std::num::NonZeroUsize;

use crate::{Experiment, Host, LabError, workers};
use plan::Task;

/// The target overflow probability is two to the power of minus this number.
pub const SECURITY_BITS: f64 = 80.0;

impl Experiment for StashStudyPlan {
    const NAME: &'static str = "stash-study";
    const RESULTS: &'static str = "stash-study.json";
    const STEPS: &'static str = "accesses";
    type Record = StashRecord;
    type Results = Study;

    fn runs_file(&self) -> Option<&'static str> {
        Some("stash-study.jsonl")
    }

    fn run(
        self,
        kept: &[StashRecord],
        threads: NonZeroUsize,
        host: &impl Host<StashRecord>,
    ) -> Result<Study, LabError> {
        self.check()?;
        host.planned(self.total_accesses());
        let tasks = self.tasks();
        host.runs(tasks.len());
        let runs = workers::run_all(&tasks, threads, |task| one(task, kept, host))?;
        // The runs are in the order of the plan, independently of threads.
        let mut runs = runs.into_iter();
        let of_setup = |setup: &Setup| {
            SetupResult::new(*setup, runs.by_ref().take(self.runs as usize).collect())
        };
        let results = self.setups.iter().map(of_setup).collect();
        Ok(Study { plan: self, results })
    }

    fn to_json(study: &Study) -> Result<String, LabError> {
        study.to_json()
    }

    fn text(study: &Study) -> String {
        study.table()
    }

    fn pictures(study: &Study) -> Result<Vec<(&'static str, String)>, LabError> {
        Ok(vec![("stash-study.svg", study.svg()?)])
    }
}

fn one(task: &Task, kept: &[StashRecord], host: &impl Host<StashRecord>) -> Result<Run, LabError> {
    if let Some(same) = kept.iter().find(|record| record.task == *task) {
        host.made(task.all_accesses());
        return Ok(same.run.clone());
    }
    let start = host.seconds();
    let run = measure::measure(task, &|accesses| host.made(accesses))?;
    let seconds = host.seconds() - start;
    host.keep(&StashRecord::new(task, run.clone(), seconds, host.machine(), host.version()))?;
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeptRecords;
    use crate::counting::{Counting, assert_survive_their_file, results_of};

    fn small_plan(seed: u64) -> StashStudyPlan {
        let setups = [(Scheme::PathZ4, 64), (Scheme::RawZ5A5, 160)]
            .map(|(scheme, capacity)| Setup { scheme, leaf_level: 6, capacity });
        StashStudyPlan {
            setups: setups.to_vec(),
            workload: Workload::Scan,
            accesses: 40_000,
            runs: 4,
            seed,
        }
    }

    fn study(plan: &StashStudyPlan, threads: usize) -> Study {
        results_of(plan.clone(), threads).unwrap()
    }

    #[test]
    fn the_same_seed_gives_the_same_study_on_any_number_of_threads() {
        let once = study(&small_plan(7), 1);
        assert_eq!(once, study(&small_plan(7), 3));
        assert_ne!(once.results, study(&small_plan(8), 1).results);
    }

    #[test]
    fn every_write_back_is_counted_once() {
        let study = study(&small_plan(7), 2);
        let counts: Vec<_> = study.results.iter().map(|r| r.survival().samples()).collect();
        assert_eq!(counts, [40_000, 40_000 / 5]);
    }

    #[test]
    fn a_study_continues_after_the_last_recorded_run() {
        let (plan, host) = (small_plan(7), Counting::default());
        let once = plan.clone().run(&[], NonZeroUsize::MIN, &host).unwrap();
        let steps = |host: Counting| [host.planned.into_inner(), host.made.into_inner()];
        let file = host.file.lock().unwrap().clone();
        assert_eq!(steps(host), [plan.total_accesses(); 2]);

        let torn = &file.as_bytes()[..file.len() - 10];
        let kept = KeptRecords::<StashRecord>::read("stash-study.jsonl", torn).unwrap().records;
        assert_eq!(kept.len(), 7);
        let host = Counting::default();
        assert_eq!(plan.clone().run(&kept, NonZeroUsize::MIN, &host).unwrap(), once);
        assert_eq!(host.file.lock().unwrap().lines().count(), 1);
        assert_eq!(steps(host), [plan.total_accesses(); 2]);

        // Other numbers of accesses and other seeds are other runs.
        for other in [
            StashStudyPlan { accesses: 40_004, ..plan.clone() },
            StashStudyPlan { seed: 8, ..plan },
        ] {
            let host = Counting::default();
            other.run(&kept, NonZeroUsize::MIN, &host).unwrap();
            assert_eq!(host.file.lock().unwrap().lines().count(), 8);
        }
    }

    #[test]
    fn a_study_survives_its_results_file() {
        assert_survive_their_file::<StashStudyPlan>(&study(&small_plan(7), 2));
    }

    #[test]
    fn an_overfull_tree_runs_away_and_gets_no_fit() {
        let mut plan = small_plan(7);
        plan.setups.truncate(1);
        plan.setups[0].leaf_level = 12;
        plan.setups[0].capacity = 32_700;
        let study = study(&plan, 2);
        assert!(study.results[0].ran_away());
        assert!(study.results[0].fit().is_none());
    }

    #[test]
    fn impossible_plans_are_refused() {
        let mut plans = vec![small_plan(1); 4];
        plans[0].runs = 1;
        plans[1].accesses = 10;
        plans[2].setups.clear();
        plans[3].setups[0].capacity = 0;
        for plan in plans {
            let result = results_of(plan.clone(), 1);
            assert!(matches!(result, Err(LabError::Plan(_))), "{plan:?}");
        }
    }
}
