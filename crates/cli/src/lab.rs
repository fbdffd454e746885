//! `oblivio lab`: the measurements behind the documentation.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use oblivio_lab::EXPERIMENTS;
use oblivio_lab::stash_study::{self, Plan, Study};

use crate::args::{DrawArgs, StashStudyArgs};
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::files::{self, OutputDir};
use crate::{output, progress};

/// `oblivio lab list`.
pub(crate) fn list() -> Result<(), CliError> {
    let lines = EXPERIMENTS
        .iter()
        .map(|experiment| format!("{:14} {}", experiment.name, experiment.question));
    output::print(&lines.collect::<Vec<_>>().join("\n"))
}

/// `oblivio lab run stash-study`.
pub(crate) fn run_stash_study(args: &StashStudyArgs) -> Result<(), CliError> {
    let plan = plan(args);
    let threads = args.threads.or_else(|| std::thread::available_parallelism().ok());
    let output_dir = OutputDir::prepare(&args.output)?;

    let stopwatch = Stopwatch::start();
    let bar = progress::bar(plan.total_accesses());
    let study =
        stash_study::run(&plan, threads.unwrap_or(NonZeroUsize::MIN), &|done| bar.inc(done))?;
    bar.finish_and_clear();
    let seconds = stopwatch.elapsed().as_secs_f64();

    let results = study.to_json()?;
    let results_path = output_dir.write("stash-study.json", &results)?;
    let plot_path = write_plot(&study, &output_dir)?;
    if args.json {
        return output::print(&results);
    }
    output::print(&format!(
        "{}\n{} accesses in {seconds:.0} s\nresults  {}\nplot     {}",
        study.table(),
        plan.total_accesses(),
        results_path.display(),
        plot_path.display()
    ))
}

/// `oblivio lab draw`.
pub(crate) fn draw_stash_study(args: &DrawArgs) -> Result<(), CliError> {
    let text = std::fs::read_to_string(&args.results)
        .map_err(|error| files::cannot_read(&args.results, &error))?;
    let study = Study::from_json(&text)?;
    let plot_path = write_plot(&study, &OutputDir::prepare(&args.output)?)?;
    output::print(&format!("{}\nplot     {}", study.table(), plot_path.display()))
}

fn plan(args: &StashStudyArgs) -> Plan {
    let plan = if args.quick { Plan::quick() } else { Plan::full() };
    Plan {
        accesses: args.accesses.unwrap_or(plan.accesses),
        runs: args.seeds.unwrap_or(plan.runs),
        workload: args.workload.into(),
        seed: args.seed,
        ..plan
    }
}

fn write_plot(study: &Study, output_dir: &OutputDir) -> Result<PathBuf, CliError> {
    output_dir.write("stash-study.svg", &study.svg()?)
}
