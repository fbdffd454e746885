//! Making the runs, on all processors.

use std::cell::Cell;
use std::num::NonZeroUsize;

use oblivio_sim::controller::{Initial, OramSpec};
use oblivio_sim::functional::{Phase, Requests, Study};

use super::course::{Asked, Stretch};
use super::plan::{Plan, Run};
use super::record::{BlocksRecord, Taken};
use crate::evaluation::{Programs, checksum};
use crate::records::Host;
use crate::{LabError, workers};

/// Paths that a data block takes until it was accessed once, roughly: one for itself, and more for the
/// position map.
const PATHS_PER_FIRST_ACCESS: u64 = 2;

/// Makes all `runs` but those that are among `kept`, at most `jobs` at a time, and gives the records of all,
/// in their order. The steps are paths. A run takes about 2 GB while its tree has leaves on level 24, and
/// half for each level less.
///
/// # Errors
/// [`LabError::Simulation`] when a run fails, and what [`Host::keep`] fails with.
pub fn run(
    plan: &Plan,
    runs: &[Run],
    programs: &Programs,
    kept: &[BlocksRecord],
    jobs: NonZeroUsize,
    host: &impl Host<BlocksRecord>,
) -> Result<Vec<BlocksRecord>, LabError> {
    for run in runs {
        host.planned(all_paths(&plan.spec(run)?, &run.course.stretches(plan, programs)));
    }
    workers::run_all(runs, jobs, |run| one(plan, run, programs, kept, host))
}

fn one(
    plan: &Plan,
    run: &Run,
    programs: &Programs,
    kept: &[BlocksRecord],
    host: &impl Host<BlocksRecord>,
) -> Result<BlocksRecord, LabError> {
    let (spec, key) = (plan.spec(run)?, plan.key(run));
    let stretches = run.course.stretches(plan, programs);
    let progress = Told { host, most: all_paths(&spec, &stretches), told: Cell::new(0) };
    let trace = checksum_of(&stretches, programs);
    if let Some(same) = kept.iter().find(|kept| kept.is_same_run(&key, trace, &spec)) {
        progress.up_to(u64::MAX);
        return Ok(same.clone());
    }
    let start = host.seconds();
    let snapshots = snapshots(plan, &spec, &stretches, programs, &progress)?;
    progress.up_to(u64::MAX);
    let record = BlocksRecord {
        key,
        variant: run.variant.to_owned(),
        course: run.course.name().to_owned(),
        trace,
        seed: plan.seed,
        spec,
        snapshots,
        seconds: host.seconds() - start,
        machine: host.machine().to_owned(),
        version: host.version().to_owned(),
    };
    host.keep(&record)?;
    Ok(record)
}

fn snapshots(
    plan: &Plan,
    spec: &OramSpec,
    stretches: &[Stretch],
    programs: &Programs,
    progress: &Told<'_, impl Host<BlocksRecord>>,
) -> Result<Vec<Taken>, LabError> {
    let first = first_paths(spec);
    let mut study = Study::new(spec, plan.seed, &mut |paths| progress.up_to(paths.min(first)))?;
    let mut taken = vec![Taken { after: "start".to_owned(), snapshot: study.snapshot()? }];
    let mut before = first;
    for Stretch { asked, paths, snapshots } in stretches {
        let trace;
        let requests = match *asked {
            Asked::Program(name) => {
                trace = programs.placed(name, spec.data_blocks, plan.seed)?;
                Requests::Trace { trace: &trace, llc: plan.llc()? }
            }
            Asked::Uniform => Requests::Uniform,
            Asked::Reuse(share) => {
                let [cache_lines, window] = plan.reuse_lines();
                Requests::Reuse { share, window, cache_lines }
            }
        };
        let at: Vec<_> = (1..=*snapshots).map(|number| paths * number / snapshots).collect();
        let phase = Phase { requests, paths: *paths };
        let seen = study.run(&[phase], &at, &mut |paths| progress.up_to(before + paths))?;
        let after = asked.name();
        taken.extend(seen.into_iter().map(|snapshot| Taken { after: after.clone(), snapshot }));
        before += paths;
    }
    Ok(taken)
}

/// Of all traces of a course, as they are in their files. Where their pages go follows from the seed.
fn checksum_of(stretches: &[Stretch], programs: &Programs) -> u32 {
    let mut checksums = crc32fast::Hasher::new();
    for stretch in stretches {
        if let Asked::Program(name) = stretch.asked {
            let records = programs.program(name).map_or(&[][..], |trace| trace.records());
            checksums.update(&checksum(records).to_le_bytes());
        }
    }
    checksums.finalize()
}

fn all_paths(spec: &OramSpec, stretches: &[Stretch]) -> u64 {
    first_paths(spec) + stretches.iter().map(|stretch| stretch.paths).sum::<u64>()
}

/// About as many as it takes to hold the first blocks.
fn first_paths(spec: &OramSpec) -> u64 {
    match spec.initial {
        Initial::EachOnce => spec.data_blocks * PATHS_PER_FIRST_ACCESS,
        Initial::Empty | Initial::Placed => 0,
    }
}

/// What is told of a run: the paths since the last time, and not more than were planned.
struct Told<'a, H> {
    host: &'a H,
    most: u64,
    told: Cell<u64>,
}

impl<H: Host<BlocksRecord>> Told<'_, H> {
    fn up_to(&self, paths: u64) {
        let now = paths.min(self.most).max(self.told.get());
        self.host.made(now - self.told.replace(now));
    }
}
