//! Estimates how long an evaluation will take.

use std::collections::HashSet;
use std::fmt;
use std::num::NonZeroUsize;

use oblivio_sim::controller::OramSpec;
use oblivio_sim::system::{self, WarmUp};

use super::placed::PlacedTraces;
use super::plan::{EvaluationPlan, Run};
use super::record::RunRecord;
use super::run::{initial, lines_of};
use crate::LabError;
use crate::kept_studies::KeptStudies;
use crate::records::{Host, counted_runs};

/// Maximum length in records of a trial run, which is made if no recorded run gives the time. It is
/// long enough that paths dominate the start-up cost.
const TRIAL_RECORDS: usize = 4000;

/// The estimated time of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeEstimate {
    /// The number of runs.
    runs: usize,
    /// The number of runs that are already recorded.
    kept: usize,
    /// Estimated seconds for the runs that are not recorded. `None` if all are recorded.
    seconds: Option<f64>,
}

/// Estimates the time of those `runs` that are not in `kept`, with `jobs` runs at a time. The time
/// per record comes from the most similar runs in `kept`. Runs with checked DRAM commands count
/// only if `plan` checks commands, and other runs only if it does not. Without such runs, a trial
/// run gives the time.
///
/// # Errors
/// [`LabError::Simulation`] if a machine cannot run.
pub(super) fn time_estimate(
    plan: &EvaluationPlan,
    runs: &[Run],
    traces: &PlacedTraces<'_>,
    kept: &[RunRecord],
    jobs: NonZeroUsize,
    host: &impl Host<RunRecord>,
    studies: &KeptStudies<'_>,
) -> Result<TimeEstimate, LabError> {
    let mut left = Vec::new();
    for run in runs {
        let (spec, key) = (plan.spec(run)?, plan.key(run));
        let mut alike = kept.iter().filter(|record| record.key == key).peekable();
        let is_kept = alike.peek().is_some() && {
            let trace = traces.checksum(run, lines_of(&spec, run))?;
            alike.any(|record| {
                record.is_same_run(&key, trace, plan.seed, &spec) && record.is_checked_as(plan)
            })
        };
        if !is_kept {
            left.push(run);
        }
    }
    let mut time_estimate =
        TimeEstimate { runs: runs.len(), kept: runs.len() - left.len(), seconds: None };
    let Some(first) = left.first() else { return Ok(time_estimate) };
    // Checking commands takes several times as long.
    let is_alike = |record: &&RunRecord| record.checked_commands.is_some() == plan.checks_commands;
    let seconds = match kept.iter().filter(is_alike).collect::<Vec<_>>().as_slice() {
        [] => try_out(plan, first, traces, host, studies)?.seconds(plan, &left)?,
        alike => left.iter().map(|run| timed_records(run) * nearest(run, alike)).sum::<f64>(),
    };
    time_estimate.seconds = Some(seconds / jobs.get().min(left.len()) as f64);
    Ok(time_estimate)
}

fn timed_records(run: &Run) -> f64 {
    run.scale.timed_records() as f64
}

/// The costs of a run, as measured in a trial run.
struct Trial {
    leaf_level: u8,
    /// Seconds to create the initial tree, for the first run that uses the tree.
    tree: f64,
    /// Seconds to copy the initial tree.
    copy: f64,
    /// Seconds per record of the run.
    record: f64,
}

fn try_out(
    plan: &EvaluationPlan,
    run: &Run,
    traces: &PlacedTraces<'_>,
    host: &impl Host<RunRecord>,
    studies: &KeptStudies<'_>,
) -> Result<Trial, LabError> {
    let spec = plan.spec(run)?;
    let mut trace = traces.records(run, lines_of(&spec, run))?;
    trace.truncate(TRIAL_RECORDS);
    let (records, seed) = (trace.len() as f64, plan.seed_of(&run.workload));
    let start = host.seconds();
    drop(initial(&spec, plan.seed, studies)?);
    let made = host.seconds();
    let initial = initial(&spec, plan.seed, studies)?;
    let begun = host.seconds();
    if plan.checks_commands {
        system::run_checked(&spec, initial, trace, WarmUp::default(), seed, &())?;
    } else {
        system::run_from(&spec, initial, trace, WarmUp::default(), seed, &())?;
    }
    let record = (host.seconds() - begun) / records;
    let leaf_level = run.scale.leaf_level;
    Ok(Trial { leaf_level, tree: made - start, copy: begun - made, record })
}

impl Trial {
    /// Seconds for all `runs` in sequence.
    fn seconds(&self, plan: &EvaluationPlan, runs: &[&Run]) -> Result<f64, LabError> {
        // Half as many blocks take half as long to place and to copy.
        let half =
            |run: &Run| 2f64.powi(i32::from(run.scale.leaf_level) - i32::from(self.leaf_level));
        let (mut trees, mut seconds) = (HashSet::new(), 0.0);
        for run in runs {
            seconds += self.record * timed_records(run);
            if let Some(tree) = plan.initial_tree(run)? {
                let is_first = trees.insert(tree);
                seconds += half(run) * if is_first { self.tree + self.copy } else { self.copy };
            }
        }
        Ok(seconds)
    }
}

/// Seconds per record in the recorded runs that are most like `run`: with the same machine and tree
/// size; else with the same tree size; else all.
fn nearest(run: &Run, kept: &[&RunRecord]) -> f64 {
    let level = |record: &RunRecord| {
        record.spec.oram.as_ref().map_or(record.scale.leaf_level, OramSpec::leaf_level)
    };
    let is_on_such_a_tree = |record: &RunRecord| level(record) == run.scale.leaf_level;
    let is_same_machine =
        |record: &RunRecord| is_on_such_a_tree(record) && record.variant == run.variant;
    let mean = |is_like: &dyn Fn(&RunRecord) -> bool| {
        let alike = kept.iter().copied().filter(|record| is_like(record));
        let (seconds, records) = alike.fold((0.0, 0), |(seconds, records), record| {
            (seconds + record.seconds, records + record.scale.timed_records())
        });
        (records > 0).then(|| seconds / records as f64)
    };
    mean(&is_same_machine)
        .or_else(|| mean(&is_on_such_a_tree))
        .or_else(|| mean(&|_| true))
        .unwrap_or(0.0)
}

impl fmt::Display for TimeEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, kept, seconds } = self;
        let all = counted_runs(*runs);
        let Some(seconds) = seconds else {
            return match runs {
                1 => write!(f, "{all}, which is kept"),
                _ => write!(f, "{all}, all of which are kept"),
            };
        };
        let are = if *kept == 1 { "is" } else { "are" };
        write!(f, "{all}, of which {kept} {are} kept; the rest takes about ")?;
        match seconds {
            0.0..90.0 => write!(f, "{:.0} s", seconds.max(1.0)),
            90.0..5400.0 => write!(f, "{:.0} minutes", seconds / 60.0),
            _ => write!(f, "{:.1} hours", seconds / 3600.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_shown_in_words() {
        let text = |kept, seconds| TimeEstimate { runs: 9, kept, seconds }.to_string();
        assert_eq!(text(9, None), "9 runs, all of which are kept");
        let one = |kept, seconds| TimeEstimate { runs: 1, kept, seconds }.to_string();
        assert_eq!(one(1, None), "1 run, which is kept");
        assert_eq!(one(0, Some(7.0)), "1 run, of which 0 are kept; the rest takes about 7 s");
        assert!(text(1, Some(7.0)).starts_with("9 runs, of which 1 is kept;"));
        for (seconds, words) in
            [(0.2, "1 s"), (89.0, "89 s"), (91.0, "2 minutes"), (9000.0, "2.5 hours")]
        {
            let expected = format!("9 runs, of which 3 are kept; the rest takes about {words}");
            assert_eq!(text(3, Some(seconds)), expected);
        }
    }
}
