//! Makes the runs of the evaluation, several at a time.

use std::cell::Cell;
use std::collections::HashMap;
use std::num::NonZeroUsize;

use oblivio_sim::controller::{InitialOram, OramSpec};
use oblivio_sim::system::{self, Progress, SystemSpec, WarmUp};
use oblivio_sim::{MODEL, SimError};

use super::placed::{PlacedTraces, Placement};
use super::plan::{EvaluationPlan, Run};
use super::record::RunRecord;
use super::time_estimate::time_estimate;
use super::workloads::Programs;
use crate::kept_studies::KeptStudies;
use crate::records::{Host, Trees};
use crate::{LabError, workers};

/// Makes all `runs` that are not in `kept`, at most `jobs` at a time, and returns the records of
/// all runs, in their order. Steps are records, including warm-ups. A run takes about 2 GB if its
/// tree has leaves on level 24, and half per level less. One more tree, of 1.4 GB at level 24, is
/// shared: runs with the same initial tree copy it, so such runs should be adjacent in `runs`. With
/// `trees`, each initial tree is made only once. The records are the same.
///
/// # Errors
/// [`LabError::Plan`] if a machine cannot run or a trace is missing, [`LabError::Simulation`] if a
/// trace does not fit or a run fails, and the errors of [`Host::keep`].
pub fn run(
    plan: &EvaluationPlan,
    runs: &[Run],
    programs: &Programs,
    kept: &[RunRecord],
    jobs: NonZeroUsize,
    host: &impl Host<RunRecord>,
    trees: Option<&dyn Trees>,
) -> Result<Vec<RunRecord>, LabError> {
    // Refuse impossible runs before others take hours.
    let traces = PlacedTraces::new(plan, programs);
    for run in runs {
        let spec = plan.spec(run)?;
        spec.check().map_err(|error| {
            // A manifest uses the keys of a machine's file, with hyphens.
            let is_of_file = plan.machine(&run.variant).is_ok_and(|own| own.described().is_some());
            let why = error.to_string();
            let why = if is_of_file { why } else { why.replace('_', "-") };
            LabError::Plan(format!("{} under {} cannot run: {why}", run.variant, run.workload))
        })?;
        traces.checksum(run, lines_of(&spec, run))?;
    }
    host.planned(runs.iter().map(|run| run.scale.timed_records()).sum());
    let remark = |text: &str| host.remark(text);
    let studies = KeptStudies::new(trees, &remark);
    let time_estimate = time_estimate(plan, runs, &traces, kept, jobs, host, &studies)?;
    host.foreseen(&time_estimate.to_string());
    workers::run_all(runs, jobs, |run| one(plan, run, programs, &traces, kept, host, &studies))
}

/// Returns the records in `kept` that belong to `runs`, and the number of runs without a record.
/// Figures that are made without traces use these records.
///
/// A record has the checksum of its placed trace. All records of a run must have the same checksum,
/// and so must all runs of a workload with the same placement of pages. Otherwise they come from
/// different recordings of the program, and a speed-up would compare two recordings. Checksums of
/// different placements cannot be compared.
///
/// # Errors
/// [`LabError::Input`] if `kept` has runs of a workload from more than one recording, and the
/// errors of [`EvaluationPlan::spec`].
pub fn kept_runs(
    plan: &EvaluationPlan,
    runs: &[Run],
    kept: &[RunRecord],
) -> Result<(Vec<RunRecord>, usize), LabError> {
    let mut found: Vec<RunRecord> = Vec::new();
    let mut traces: HashMap<Placement, u32> = HashMap::new();
    for run in runs {
        let (spec, key) = (plan.spec(run)?, plan.key(run));
        let is_same = |record: &&RunRecord| {
            record.is_same_run(&key, record.trace, plan.seed, &spec) && record.is_checked_as(plan)
        };
        let placement = Placement::from_run(run, lines_of(&spec, run));
        let mut same = kept.iter().filter(is_same).peekable();
        found.extend(same.peek().map(|first| RunRecord::clone(first)));
        for record in same {
            let trace = *traces.entry(placement.clone()).or_insert(record.trace);
            if record.trace != trace {
                return Err(LabError::Input(format!(
                    "{} has runs of more than one trace, such as {key}: keep the runs of one \
                     recording",
                    run.workload
                )));
            }
        }
    }
    let missing = runs.len() - found.len();
    Ok((found, missing))
}

fn one(
    plan: &EvaluationPlan,
    run: &Run,
    programs: &Programs,
    traces: &PlacedTraces<'_>,
    kept: &[RunRecord],
    host: &impl Host<RunRecord>,
    studies: &KeptStudies<'_>,
) -> Result<RunRecord, LabError> {
    let scale = run.scale;
    let (spec, key, seed) = (plan.spec(run)?, plan.key(run), plan.seed_of(&run.workload));
    let lines = lines_of(&spec, run);
    let checksum = traces.checksum(run, lines)?;
    let is_same = |record: &&RunRecord| {
        record.is_same_run(&key, checksum, plan.seed, &spec) && record.is_checked_as(plan)
    };
    if let Some(same) = kept.iter().find(is_same) {
        host.made(scale.timed_records());
        return Ok(same.clone());
    }
    let (start, progress) = (host.seconds(), ProgressReporter { host, reported: Cell::new(0) });
    let warm_up = WarmUp {
        llc_records: scale.llc_warm_up,
        fills_small_tree: run.switches.fills_small_tree,
        records: scale.warm_up,
    };
    let initial = initial(&spec, plan.seed, studies)?;
    let records = traces.records(run, lines)?;
    let (outcome, checked_commands) = if plan.checks_commands {
        let (outcome, commands) =
            system::run_checked(&spec, initial, records, warm_up, seed, &progress)
                .map_err(|error| named(error, &key))?;
        (outcome, Some(commands))
    } else {
        (system::run_from(&spec, initial, records, warm_up, seed, &progress)?, None)
    };
    progress.records(scale.timed_records());
    let record = RunRecord {
        key,
        variant: run.variant.clone(),
        workload: run.workload.clone(),
        trace: checksum,
        samples: programs.are_samples(),
        scale,
        seed,
        initial_seed: Some(plan.seed),
        spec,
        outcome,
        checked_commands,
        model: MODEL,
        seconds: host.seconds() - start,
        machine: host.machine().to_owned(),
        version: host.version().to_owned(),
    };
    host.keep(&record)?;
    Ok(record)
}

/// Adds the key of the run to an error about an illegal DRAM command.
fn named(error: SimError, key: &str) -> SimError {
    match error {
        SimError::Command(what) => SimError::Command(format!("{key}: {what}")),
        other => other,
    }
}

/// The initial contents of the ORAM. They are the same for all workloads; only the seeds of the
/// requests differ.
pub(super) fn initial(
    spec: &SystemSpec,
    seed: u64,
    studies: &KeptStudies<'_>,
) -> Result<InitialOram, LabError> {
    Ok(match spec.oram.as_ref().and_then(OramSpec::studied) {
        Some(main) => InitialOram::Made(studies.initial_copy(&main, seed)?.into()),
        None => InitialOram::Seed(seed),
    })
}

/// The number of lines in the protected space that `run` has on the machine `spec`.
pub(super) fn lines_of(spec: &SystemSpec, run: &Run) -> u64 {
    let without_oram = EvaluationPlan::lines(run.scale.leaf_level) * run.switches.block_lines;
    spec.oram.as_ref().map_or(without_oram, OramSpec::lines)
}

/// Reports progress as the number of new records.
struct ProgressReporter<'a, H> {
    host: &'a H,
    reported: Cell<u64>,
}

impl<H: Host<RunRecord>> Progress for ProgressReporter<'_, H> {
    fn records(&self, done: u64) {
        self.host.made(done - self.reported.replace(done));
    }
}
