//! `oblivio-lab run blocks`.

use oblivio_cli::files::OutputDir;
use oblivio_lab::Trees;
use oblivio_lab::blocks::{BlocksFigure, BlocksRecord, FIGURES, Plan, figures, run};

use super::made::{FIGURES_FILE, Made};
use super::runs::{self, Here, Making, RunsFile};
use super::trees::TreesDir;
use crate::args::BlocksArgs;
use crate::error::ProgramError;

/// `oblivio-lab run blocks`.
pub(crate) fn run_blocks(args: &BlocksArgs) -> Result<(), ProgramError> {
    let (plan, chosen) = (plan(args), BlocksFigure::chosen(&args.figure)?);
    let programs = runs::programs(&args.runs)?;
    let trees = args.trees.as_deref().map(TreesDir::prepare).transpose()?;
    let trees = trees.as_ref().map(|trees| trees as &dyn Trees);
    let making = Making::new(&args.runs, &programs, &args.output);
    make(&plan, &chosen, &making, trees)?.print(args.runs.json)
}

/// Makes the runs that are not there yet, and the figures.
pub(super) fn make(
    plan: &Plan,
    chosen: &[&BlocksFigure],
    making: &Making<'_>,
    trees: Option<&dyn Trees>,
) -> Result<Made, ProgramError> {
    let Making { programs, jobs, output } = making;
    let wanted = plan.runs(chosen, programs)?;
    let output_dir = OutputDir::prepare(output)?;
    output_dir.refuse_directory(FIGURES_FILE)?;
    let (file, kept) = RunsFile::open(&output_dir)?;

    let host = Here::<BlocksRecord>::new(file, "paths");
    let records = run(plan, &wanted, programs, &kept, *jobs, &host, trees)?;
    let figures = figures(chosen, plan, programs, &records)?;
    runs::keep(figures, &output_dir, &host, records.len())
}

/// What `oblivio-lab list` says of it.
pub(super) fn list() -> String {
    let line = |figure: &BlocksFigure| format!("  {:15} {}", figure.id, figure.title);
    FIGURES.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn plan(args: &BlocksArgs) -> Plan {
    let plan = if args.quick { Plan::quick() } else { Plan::full() };
    Plan {
        leaf_level: args.levels.unwrap_or(plan.leaf_level),
        paths: args.paths.unwrap_or(plan.paths),
        initial: args.initial.into(),
        llc_bytes: args.llc_kib.map_or(plan.llc_bytes, |kib| kib << 10),
        seed: args.runs.seed,
    }
}
