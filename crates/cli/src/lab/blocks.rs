//! `oblivio lab run blocks`.

use oblivio_lab::blocks::{BlocksFigure, BlocksRecord, FIGURES, Plan, figures, run};
use oblivio_lab::evaluation::Programs;
use oblivio_lab::{Host, LabError, report};

use super::runs::{self, Here, RunsFile, recorded};
use super::threads;
use crate::args::BlocksArgs;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::output;

/// `oblivio lab run blocks`.
pub(crate) fn run_blocks(args: &BlocksArgs) -> Result<(), CliError> {
    let (plan, chosen) = (plan(args), BlocksFigure::chosen(&args.figure)?);
    let programs = args.traces.as_deref().map_or_else(|| Ok(Programs::samples()?), recorded)?;
    let runs = plan.runs(&chosen, &programs)?;
    let output_dir = OutputDir::prepare(&args.output)?;
    let (file, kept) = RunsFile::open(output_dir.path(runs::RUNS))?;

    let host = Here::<BlocksRecord>::new(file, "paths");
    let records = run(&plan, &runs, &programs, &kept, threads(args.jobs), &host)?;
    host.bar.finish_and_clear();

    let figures = figures(&chosen, &plan, &programs, &records)?;
    let json = serde_json::to_string_pretty(&figures).map_err(LabError::from)?;
    let figures_path = output_dir.write(runs::FIGURES, &json)?;
    if args.json {
        return output::print(&json);
    }
    let sections: Vec<_> = figures.iter().map(report::section).collect();
    output::print(&format!(
        "{}\n{} runs, {:.0} s\nruns     {}\nfigures  {}",
        sections.join("\n"),
        records.len(),
        host.seconds(),
        output_dir.path(runs::RUNS).display(),
        figures_path.display()
    ))
}

/// What `oblivio lab list` says of it.
pub(super) fn list() -> String {
    let line = |figure: &BlocksFigure| format!("  {:15} {}", figure.id, figure.title);
    FIGURES.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn plan(args: &BlocksArgs) -> Plan {
    let plan = if args.quick { Plan::quick() } else { Plan::full() };
    Plan {
        leaf_level: args.levels.unwrap_or(plan.leaf_level),
        paths: args.paths.unwrap_or(plan.paths),
        reuse_paths: args.reuse_paths.unwrap_or(plan.reuse_paths),
        initial: args.initial.into(),
        llc_bytes: args.llc_kib.map_or(plan.llc_bytes, |kib| kib << 10),
        seed: args.seed,
    }
}
