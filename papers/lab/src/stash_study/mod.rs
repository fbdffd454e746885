//! The stash study: how large must the stash be?
//!
//! Tiny ORAM states a stash bound `C` for which the stash overflows with probability `2^-80`: 78
//! blocks for Path ORAM with Z = 4, and 64 for RAW ORAM with Z = 5, A = 5. No simulation sees an
//! event that rare. What can be seen is how often `n` blocks are left in the stash; that falls
//! exponentially with `n`, and the straight line through the logarithms is carried on to `2^-80`.
//!
//! The engine itself is measured, not a model of it. `docs/stash-study.md` of the repository has the results.

mod fit;
mod measure;
mod plan;
mod plot;
mod record;
mod results;
mod setup;
mod survival;
mod table;

pub use fit::{Estimate, Line, TailFit};
pub(crate) use measure::measure_raw;
pub use measure::{Run, STASH_BLOCKS_SEEN_MAX};
pub use plan::Plan;
pub use record::StashRecord;
pub use results::{SetupResult, Study};
pub use setup::{Scheme, Setup};
pub use survival::Survival;

pub use crate::Workload;

use std::num::NonZeroUsize;

use crate::{Host, LabError, workers};
use plan::Task;

/// How the command line calls this experiment.
pub const NAME: &str = "stash-study";

/// The overflow probability asked for, as a power of two.
pub const SECURITY_BITS: f64 = 80.0;

/// Measures what `plan` asks for, on `threads` threads, but for the runs that are among `kept`. The steps are
/// accesses, told a few thousand at a time.
///
/// # Errors
/// [`LabError::Plan`] when the plan cannot be measured, [`LabError::Engine`] when the engine fails, and what
/// [`Host::keep`] fails with.
pub fn run(
    plan: &Plan,
    kept: &[StashRecord],
    threads: NonZeroUsize,
    host: &impl Host<StashRecord>,
) -> Result<Study, LabError> {
    plan.check()?;
    host.planned(plan.total_accesses());
    let runs = workers::run_all(&plan.tasks(), threads, |task| one(task, kept, host))?;
    // They are in the order of the plan, whichever thread made them.
    let mut runs = runs.into_iter();
    let results = plan
        .setups
        .iter()
        .map(|setup| SetupResult::new(*setup, runs.by_ref().take(plan.runs as usize).collect()))
        .collect();
    Ok(Study { plan: plan.clone(), results })
}

fn one(task: &Task, kept: &[StashRecord], host: &impl Host<StashRecord>) -> Result<Run, LabError> {
    if let Some(same) = kept.iter().find(|kept| kept.task == *task) {
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
    use crate::Kept;
    use crate::counting::Counting;

    fn small_plan(seed: u64) -> Plan {
        let setups = [(Scheme::PathZ4, 64), (Scheme::RawZ5A5, 160)]
            .map(|(scheme, capacity)| Setup { scheme, leaf_level: 6, capacity });
        Plan { setups: setups.to_vec(), workload: Workload::Scan, accesses: 40_000, runs: 4, seed }
    }

    fn study(plan: &Plan, threads: usize) -> Study {
        run(plan, &[], NonZeroUsize::new(threads).unwrap(), &Counting::default()).unwrap()
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
    fn a_study_goes_on_behind_the_last_run_that_ended() {
        let (plan, host) = (small_plan(7), Counting::default());
        let once = run(&plan, &[], NonZeroUsize::MIN, &host).unwrap();
        let told = |host: Counting| [host.planned.into_inner(), host.made.into_inner()];
        let file = host.file.lock().unwrap().clone();
        assert_eq!(told(host), [plan.total_accesses(); 2]);

        let torn = &file.as_bytes()[..file.len() - 10];
        let kept = Kept::<StashRecord>::read("stash-study.jsonl", torn).unwrap().records;
        assert_eq!(kept.len(), 7);
        let host = Counting::default();
        assert_eq!(run(&plan, &kept, NonZeroUsize::MIN, &host).unwrap(), once);
        assert_eq!(host.file.lock().unwrap().lines().count(), 1);
        assert_eq!(told(host), [plan.total_accesses(); 2]);

        // Other accesses are other runs, and so are those of another seed.
        for other in [Plan { accesses: 40_004, ..plan.clone() }, Plan { seed: 8, ..plan }] {
            let host = Counting::default();
            run(&other, &kept, NonZeroUsize::MIN, &host).unwrap();
            assert_eq!(host.file.lock().unwrap().lines().count(), 8);
        }
    }

    #[test]
    fn a_study_survives_its_results_file() {
        let study = study(&small_plan(7), 2);
        assert_eq!(Study::from_json(&study.to_json().unwrap()).unwrap(), study);
    }

    #[test]
    fn a_tree_that_is_too_full_runs_away_and_gets_no_fit() {
        let mut plan = small_plan(7);
        plan.setups.truncate(1);
        plan.setups[0].leaf_level = 12;
        plan.setups[0].capacity = 32_700;
        let study = study(&plan, 2);
        assert!(study.results[0].ran_away());
        assert!(study.results[0].fit().is_none());
    }

    #[test]
    fn plans_that_cannot_be_measured_are_refused() {
        let mut plans = vec![small_plan(1); 4];
        plans[0].runs = 1;
        plans[1].accesses = 10;
        plans[2].setups.clear();
        plans[3].setups[0].capacity = 0;
        for plan in plans {
            let result = run(&plan, &[], NonZeroUsize::MIN, &Counting::default());
            assert!(matches!(result, Err(LabError::Plan(_))), "{plan:?}");
        }
    }
}
