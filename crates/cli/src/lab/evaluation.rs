//! `oblivio lab run evaluation`.

use oblivio_lab::evaluation::{Manifest, Plan, Programs, RunRecord, Scale, figures, run};
use oblivio_lab::{Host, LabError, report};

use super::runs::{FIGURES, Here, RUNS, RunsFile, recorded};
use super::threads;
use crate::args::EvaluationArgs;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::output;

/// `oblivio lab run evaluation`.
pub(crate) fn run_evaluation(args: &EvaluationArgs) -> Result<(), CliError> {
    let (plan, manifests) = (plan(args), Manifest::chosen(&args.figure)?);
    let programs = args.traces.as_deref().map_or_else(|| Ok(Programs::samples()?), recorded)?;
    let runs = plan.runs(&manifests, &programs)?;
    let output_dir = OutputDir::prepare(&args.output)?;
    let (file, kept) = RunsFile::open(output_dir.path(RUNS))?;

    let host = Here::<RunRecord>::new(file, "records");
    let records = run(&plan, &runs, &programs, &kept, threads(args.jobs), &host)?;
    host.bar.finish_and_clear();

    let figures = figures(&manifests, &plan, &programs, &records)?;
    let json = serde_json::to_string_pretty(&figures).map_err(LabError::from)?;
    let figures_path = output_dir.write(FIGURES, &json)?;
    if args.json {
        return output::print(&json);
    }
    let sections: Vec<_> = figures.iter().map(report::section).collect();
    output::print(&format!(
        "{}\n{} runs, {:.0} s\nruns     {}\nfigures  {}",
        sections.join("\n"),
        records.len(),
        host.seconds(),
        output_dir.path(RUNS).display(),
        figures_path.display()
    ))
}

/// What `oblivio lab list` says of it.
pub(super) fn list() -> Result<String, CliError> {
    let line = |figure: &Manifest| format!("  {:12} {}", figure.id, figure.title);
    Ok(Manifest::all()?.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn plan(args: &EvaluationArgs) -> Plan {
    let plan = if args.quick { Plan::quick() } else { Plan::full() };
    let records = args.records.unwrap_or(plan.scale.records);
    let scale = Scale {
        leaf_level: args.levels.unwrap_or(plan.scale.leaf_level),
        records,
        warm_up: args.warm_up.unwrap_or(records / 4),
    };
    let switches = args.switches.switches(plan.switches.llc_bytes);
    Plan { scale, switches, seed: args.seed }
}
