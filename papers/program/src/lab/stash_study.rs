//! `oblivio-lab run stash-study`.

use std::path::PathBuf;

use oblivio_cli::clock::Stopwatch;
use oblivio_cli::files::OutputDir;
use oblivio_cli::output;
use oblivio_lab::stash_study::{Plan, StashRecord, Study, run};

use super::runs::{Here, RunsFile};
use super::threads;
use crate::args::StashStudyArgs;
use crate::error::ProgramError;

/// A line for each run.
const RUNS: &str = "stash-study.jsonl";

/// `oblivio-lab run stash-study`.
pub(crate) fn run_stash_study(args: &StashStudyArgs) -> Result<(), ProgramError> {
    let plan = plan(args);
    let output_dir = OutputDir::prepare(&args.output)?;
    let (file, kept) = RunsFile::open_named::<StashRecord>(&output_dir, RUNS)?;

    let stopwatch = Stopwatch::start();
    let host = Here::new(file, "accesses");
    let study = run(&plan, &kept, threads(args.measuring.threads), &host)?;
    host.bar.finish_and_clear();
    let seconds = stopwatch.elapsed().as_secs_f64();

    let results = study.to_json()?;
    let results_path = output_dir.write("stash-study.json", &results)?;
    let plot_path = write_plot(&study, &output_dir)?;
    if args.json {
        return Ok(output::print(&results)?);
    }
    Ok(output::print(&format!(
        "{}\n{} accesses in {seconds:.0} s\nruns     {}\nresults  {}\nplot     {}",
        study.table(),
        plan.total_accesses(),
        output_dir.path(RUNS).display(),
        results_path.display(),
        plot_path.display()
    ))?)
}

pub(super) fn write_plot(study: &Study, output_dir: &OutputDir) -> Result<PathBuf, ProgramError> {
    Ok(output_dir.write("stash-study.svg", &study.svg()?)?)
}

fn plan(args: &StashStudyArgs) -> Plan {
    let mut plan = match (args.quick, args.deep) {
        (true, _) => Plan::quick(),
        (_, true) => Plan::deep(),
        _ => Plan::full(),
    };
    if let Some(scheme) = args.scheme {
        plan.setups.retain(|setup| setup.scheme == scheme.into());
    }
    Plan {
        accesses: args.accesses.unwrap_or(plan.accesses),
        runs: args.seeds.unwrap_or(plan.runs),
        workload: args.workload.into(),
        seed: args.measuring.seed,
        ..plan
    }
}
