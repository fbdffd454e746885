//! Makes the runs of the study, several at a time.

use std::cell::Cell;
use std::num::NonZeroUsize;

use oblivio_sim::MODEL;
use oblivio_sim::controller::{Initial, OramSpec};
use oblivio_sim::functional::{Phase, Requests, Study};

use super::course::{RequestSource, Stretch};
use super::plan::{BlocksPlan, Run};
use super::record::{BlocksRecord, Taken};
use super::saved::{PartialRun, Saved};
use super::setting::RequestSetting;
use crate::evaluation::{Pages, Programs, checksum};
use crate::kept_studies::KeptStudies;
use crate::records::{Host, Trees};
use crate::{LabError, workers};

/// Approximate number of paths for the first access to a data block: one for the data, and more for
/// the position map.
const PATHS_PER_FIRST_ACCESS: u64 = 2;

/// Makes all `runs` that are not in `kept`, at most `jobs` at a time, and returns the records of
/// all runs, in their order. Steps are paths. A run takes about 2 GB if its tree has leaves on
/// level 24, and half per level less. With `trees`, initial trees are made once, and an interrupted
/// run continues after its last complete stretch; the records are the same.
///
/// # Errors
/// [`LabError::Simulation`] if a run fails, and the errors of [`BlocksPlan::spec`] and
/// [`Host::keep`].
pub fn run(
    plan: &BlocksPlan,
    runs: &[Run],
    programs: &Programs,
    kept: &[BlocksRecord],
    jobs: NonZeroUsize,
    host: &impl Host<BlocksRecord>,
    trees: Option<&dyn Trees>,
) -> Result<Vec<BlocksRecord>, LabError> {
    for run in runs {
        host.planned(all_paths(&plan.spec(run)?, &run.course.stretches(plan, programs)));
    }
    let remark = |text: &str| host.remark(text);
    let studies = KeptStudies::new(trees, &remark);
    workers::run_all(runs, jobs, |run| one(plan, run, programs, kept, host, &studies))
}

fn one(
    plan: &BlocksPlan,
    run: &Run,
    programs: &Programs,
    kept: &[BlocksRecord],
    host: &impl Host<BlocksRecord>,
    studies: &KeptStudies<'_>,
) -> Result<BlocksRecord, LabError> {
    let (spec, key) = (plan.spec(run)?, plan.key(run));
    let stretches = run.course.stretches(plan, programs);
    let progress =
        ProgressReporter { host, most: all_paths(&spec, &stretches), reported: Cell::new(0) };
    let trace = checksum_of(&stretches, programs);
    let saved = Saved { studies, key: &key, trace, spec: &spec, seed: plan.seed };
    if let Some(same) = kept.iter().find(|record| record.is_same_run(&key, trace, &spec)) {
        saved.forget_run();
        progress.up_to(u64::MAX);
        return Ok(same.clone());
    }
    let (snapshots, seconds) =
        snapshots(plan, run.setting, &stretches, programs, &saved, &progress)?;
    progress.up_to(u64::MAX);
    let record = BlocksRecord {
        key: key.clone(),
        variant: run.variant.to_owned(),
        course: run.course.name().to_owned(),
        trace,
        seed: plan.seed,
        spec: spec.clone(),
        snapshots,
        model: MODEL,
        seconds,
        machine: host.machine().to_owned(),
        version: host.version().to_owned(),
    };
    host.keep(&record)?;
    saved.forget_run();
    Ok(record)
}

/// Runs the stretches. Returns the snapshots and the total seconds, including the time before an
/// interruption.
fn snapshots<H: Host<BlocksRecord>>(
    plan: &BlocksPlan,
    setting: RequestSetting,
    stretches: &[Stretch],
    programs: &Programs,
    saved: &Saved<'_>,
    progress: &ProgressReporter<'_, H>,
) -> Result<(Vec<Taken>, f64), LabError> {
    let (spec, host) = (saved.spec, progress.host);
    let start = host.seconds();
    let PartialRun { mut study, mut taken, stretches_done, seconds } =
        saved.interrupted(stretches).map_or_else(|| begin(setting, saved, progress), Ok)?;
    let (done, rest) = stretches.split_at(stretches_done);
    let mut before = first_paths(spec) + paths_of(done);
    progress.up_to(before);
    for (left, Stretch { source, paths, snapshots }) in (0..rest.len()).rev().zip(rest) {
        let trace;
        let requests = match *source {
            RequestSource::Program(name) => {
                trace = programs.placed(name, spec.data_blocks, Pages::Scattered, plan.seed)?;
                Requests::Trace { trace: &trace, llc: setting.llc(plan.llc()?) }
            }
            RequestSource::Uniform => Requests::Uniform,
        };
        let at: Vec<_> = (1..=*snapshots).map(|number| paths * number / snapshots).collect();
        let phase = Phase { requests, paths: *paths };
        let seen = study.run(&[phase], &at, &mut |paths| progress.up_to(before + paths))?;
        let after = source.name();
        taken.extend(seen.into_iter().map(|snapshot| Taken { after: after.to_owned(), snapshot }));
        before += paths;
        if left > 0 {
            saved.keep_run(&study, &taken, seconds + host.seconds() - start);
        }
    }
    Ok((taken, seconds + host.seconds() - start))
}

/// Creates the state of a run before its first stretch.
fn begin<H: Host<BlocksRecord>>(
    setting: RequestSetting,
    saved: &Saved<'_>,
    progress: &ProgressReporter<'_, H>,
) -> Result<PartialRun, LabError> {
    let first = first_paths(saved.spec);
    let mut report = |paths: u64| progress.up_to(paths.min(first));
    let mut study = match saved.spec.initial {
        Initial::EachOnce => saved.studies.initial(saved.spec, saved.seed, &mut report)?,
        // These trees are made in negligible time compared with the run.
        Initial::Empty | Initial::Placed | Initial::Aged(_) => {
            Study::new(saved.spec, saved.seed, &mut report)?
        }
    };
    if setting.watches_migration() {
        study.watch_migration();
    }
    let taken = vec![Taken { after: "start".to_owned(), snapshot: study.snapshot()? }];
    Ok(PartialRun { study, taken, stretches_done: 0, seconds: 0.0 })
}

/// The checksum of all traces of a course, as their files contain them. It does not cover the
/// placement of pages, because the seed determines it.
fn checksum_of(stretches: &[Stretch], programs: &Programs) -> u32 {
    let mut checksums = crc32fast::Hasher::new();
    for stretch in stretches {
        if let RequestSource::Program(name) = stretch.source {
            let records = programs.program(name).map_or(&[][..], |trace| trace.records());
            checksums.update(&checksum(records).to_le_bytes());
        }
    }
    checksums.finalize()
}

fn all_paths(spec: &OramSpec, stretches: &[Stretch]) -> u64 {
    first_paths(spec) + paths_of(stretches)
}

fn paths_of(stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|stretch| stretch.paths).sum()
}

/// An estimate of the paths that create the initial blocks.
fn first_paths(spec: &OramSpec) -> u64 {
    match spec.initial {
        Initial::EachOnce => spec.data_blocks * PATHS_PER_FIRST_ACCESS,
        Initial::Aged(per_thousand_blocks) => {
            spec.data_blocks * PATHS_PER_FIRST_ACCESS * u64::from(per_thousand_blocks) / 1000
        }
        Initial::Empty | Initial::Placed => 0,
    }
}

/// Reports progress as the number of new paths, up to the planned total.
struct ProgressReporter<'a, H> {
    host: &'a H,
    most: u64,
    reported: Cell<u64>,
}

impl<H: Host<BlocksRecord>> ProgressReporter<'_, H> {
    fn up_to(&self, paths: u64) {
        let now = paths.min(self.most).max(self.reported.get());
        self.host.made(now - self.reported.replace(now));
    }
}
