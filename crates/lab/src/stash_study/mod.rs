//! The stash study: how large must the stash be?
//!
//! Tiny ORAM states a stash bound `C` for which the stash overflows with probability `2^-80`: 78
//! blocks for Path ORAM with Z = 4, and 64 for RAW ORAM with Z = 5, A = 5. No simulation sees an
//! event that rare. What can be seen is how often `n` blocks are left in the stash; that falls
//! exponentially with `n`, and the straight line through the logarithms is carried on to `2^-80`.
//!
//! The engine itself is measured, not a model of it. `docs/stash-study.md` has the results.

mod fit;
mod measure;
mod plan;
mod plot;
mod results;
mod setup;
mod survival;
mod table;

pub use fit::{Estimate, Line, TailFit};
pub use measure::{Run, STASH_BLOCKS_SEEN_MAX};
pub use plan::Plan;
pub use results::{SetupResult, Study};
pub use setup::{Scheme, Setup};
pub use survival::Survival;

pub use crate::Workload;

use std::num::NonZeroUsize;

use crate::{LabError, workers};

/// How the command line calls this experiment.
pub const NAME: &str = "stash-study";

/// The overflow probability asked for, as a power of two.
pub const SECURITY_BITS: f64 = 80.0;

/// Measures what `plan` asks for, on `threads` threads. `progress` is told of accesses done, a few
/// thousand at a time.
///
/// # Errors
/// [`LabError::Plan`] when the plan cannot be measured, [`LabError::Engine`] when the engine fails.
pub fn run(
    plan: &Plan,
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Study, LabError> {
    plan.check()?;
    let mut runs = run_all(plan, threads, progress)?.into_iter();
    let results = plan
        .setups
        .iter()
        .map(|setup| SetupResult::new(*setup, runs.by_ref().take(plan.runs as usize).collect()))
        .collect();
    Ok(Study { plan: plan.clone(), results })
}

/// All runs of all setups, in the order of the plan, whichever thread made them.
fn run_all(
    plan: &Plan,
    threads: NonZeroUsize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<Run>, LabError> {
    Ok(workers::run_all(&plan.tasks(), threads, |task| measure::measure(task, progress))?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn small_plan(seed: u64) -> Plan {
        let setups = [(Scheme::PathZ4, 64), (Scheme::RawZ5A5, 160)]
            .map(|(scheme, capacity)| Setup { scheme, leaf_level: 6, capacity });
        Plan { setups: setups.to_vec(), workload: Workload::Scan, accesses: 40_000, runs: 4, seed }
    }

    fn study(plan: &Plan, threads: usize) -> Study {
        run(plan, NonZeroUsize::new(threads).unwrap(), &|_| ()).unwrap()
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
    fn progress_adds_up_to_all_accesses() {
        let told = std::sync::atomic::AtomicU64::new(0);
        let plan = small_plan(7);
        run(&plan, NonZeroUsize::MIN, &|accesses| {
            told.fetch_add(accesses, Ordering::Relaxed);
        })
        .unwrap();
        assert_eq!(told.into_inner(), plan.total_accesses());
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
            let result = run(&plan, NonZeroUsize::MIN, &|_| ());
            assert!(matches!(result, Err(LabError::Plan(_))), "{plan:?}");
        }
    }
}
