//! Making the runs, on all processors.

use std::cell::Cell;
use std::collections::HashSet;
use std::num::NonZeroUsize;

use oblivio_sim::controller::{InitialOram, OramSpec};
use oblivio_sim::system::{self, Progress, SystemSpec, WarmUp};
use oblivio_sim::trace::{Kind, Record};

use super::outlook::outlook;
use super::plan::{Plan, Run};
use super::record::RunRecord;
use super::workloads::Programs;
use crate::kept_studies::KeptStudies;
use crate::records::{Host, Trees};
use crate::{LabError, workers};

/// Makes all `runs` but those that are among `kept`, at most `jobs` at a time, and gives the records of all,
/// in their order. The steps are records, those of warm-ups included. A run takes about 2 GB while its tree has
/// leaves on level 24, and half for each level less. Where there is a place for `trees`, initial trees are made once: what
/// comes out is the same.
///
/// # Errors
/// [`LabError::Simulation`] when a machine cannot run, or a run fails, and what [`Host::keep`] fails with.
pub fn run(
    plan: &Plan,
    runs: &[Run],
    programs: &Programs,
    kept: &[RunRecord],
    jobs: NonZeroUsize,
    host: &impl Host<RunRecord>,
    trees: Option<&dyn Trees>,
) -> Result<Vec<RunRecord>, LabError> {
    // What cannot be run is refused before hours of others, and not after them.
    let mut seen = HashSet::new();
    for run in runs {
        let spec = plan.spec(run)?;
        spec.check()?;
        let (lines, records) = (lines_of(&spec, run.scale.leaf_level), run.scale.all_records());
        if seen.insert((&run.workload, records, lines)) {
            programs.records(&run.workload, records, lines, run.switches.pages, plan.seed)?;
        }
    }
    host.planned(runs.iter().map(|run| run.scale.timed_records()).sum());
    let remark = |text: &str| host.remark(text);
    let studies = KeptStudies::new(trees, &remark);
    let outlook = outlook(plan, runs, programs, kept, jobs, host, &studies)?;
    host.foreseen(&outlook.to_string());
    workers::run_all(runs, jobs, |run| one(plan, run, programs, kept, host, &studies))
}

fn one(
    plan: &Plan,
    run: &Run,
    programs: &Programs,
    kept: &[RunRecord],
    host: &impl Host<RunRecord>,
    studies: &KeptStudies<'_>,
) -> Result<RunRecord, LabError> {
    let scale = run.scale;
    let (spec, key, seed) = (plan.spec(run)?, plan.key(run), plan.seed_of(&run.workload));
    let lines = lines_of(&spec, scale.leaf_level);
    let records = scale.all_records();
    let trace = programs.records(&run.workload, records, lines, run.switches.pages, seed)?;
    let checksum = checksum(&trace);
    if let Some(same) = kept.iter().find(|kept| kept.is_same_run(&key, checksum, plan.seed, &spec))
    {
        host.made(scale.timed_records());
        return Ok(same.clone());
    }
    let (start, progress) = (host.seconds(), Told { host, told: Cell::new(0) });
    let warm_up = WarmUp { llc_records: scale.llc_warm_up, records: scale.warm_up };
    let initial = initial(&spec, plan.seed, studies)?;
    let outcome = system::run_from(&spec, initial, trace, warm_up, seed, &progress)?;
    progress.records(scale.timed_records());
    let record = RunRecord {
        key,
        variant: run.variant.clone(),
        workload: run.workload.clone(),
        trace: checksum,
        scale,
        seed,
        initial_seed: Some(plan.seed),
        spec,
        outcome,
        seconds: host.seconds() - start,
        machine: host.machine().to_owned(),
        version: host.version().to_owned(),
    };
    host.keep(&record)?;
    Ok(record)
}

/// What the ORAM holds at first: the same under all workloads, whose requests have seeds of their own.
pub(super) fn initial(
    spec: &SystemSpec,
    seed: u64,
    studies: &KeptStudies<'_>,
) -> Result<InitialOram, LabError> {
    Ok(match spec.oram.as_ref().and_then(OramSpec::studied) {
        Some(main) => InitialOram::Made(studies.initial(&main, seed, &mut |_| ())?.into()),
        None => InitialOram::Seed(seed),
    })
}

/// Lines of the protected space.
pub(super) fn lines_of(spec: &SystemSpec, leaf_level: u8) -> u64 {
    spec.oram.as_ref().map_or(Plan::lines(leaf_level), |oram| oram.data_blocks)
}

/// What is told of a run: the records since the last time.
struct Told<'a, H> {
    host: &'a H,
    told: Cell<u64>,
}

impl<H: Host<RunRecord>> Progress for Told<'_, H> {
    fn records(&self, done: u64) {
        self.host.made(done - self.told.replace(done));
    }
}

/// Of other records it is another one.
pub(crate) fn checksum(records: &[Record]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    for Record { gap, kind, line } in records {
        checksum.update(&gap.to_le_bytes());
        checksum.update(&[u8::from(*kind == Kind::Write)]);
        checksum.update(&line.to_le_bytes());
    }
    checksum.finalize()
}
