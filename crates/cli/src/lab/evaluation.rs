//! `oblivio lab run evaluation`.

use oblivio_lab::Trees;
use oblivio_lab::evaluation::{Manifest, Plan, RunRecord, Scale, figures, run};

use super::made::Made;
use super::runs::{self, Here, Making, RunsFile};
use super::trees::TreesDir;
use crate::args::EvaluationArgs;
use crate::error::CliError;
use crate::files::OutputDir;

/// `oblivio lab run evaluation`.
pub(crate) fn run_evaluation(args: &EvaluationArgs) -> Result<(), CliError> {
    let (plan, manifests) = (plan(args), Manifest::chosen(&args.figure)?);
    let programs = runs::programs(&args.runs)?;
    let trees = args.trees.as_deref().map(TreesDir::prepare).transpose()?;
    let trees = trees.as_ref().map(|trees| trees as &dyn Trees);
    let making = Making::new(&args.runs, &programs, &args.output);
    make(&plan, &manifests, &making, trees)?.print(args.runs.json)
}

/// Makes the runs that are not there yet, and the figures.
pub(super) fn make(
    plan: &Plan,
    manifests: &[Manifest],
    making: &Making<'_>,
    trees: Option<&dyn Trees>,
) -> Result<Made, CliError> {
    let Making { programs, jobs, output } = making;
    let wanted = plan.runs(manifests, programs)?;
    let output_dir = OutputDir::prepare(output)?;
    let (file, kept) = RunsFile::open(&output_dir)?;

    let host = Here::<RunRecord>::new(file, "records");
    let records = run(plan, &wanted, programs, &kept, *jobs, &host, trees)?;
    let figures = figures(manifests, plan, programs, &records)?;
    runs::keep(figures, &output_dir, &host, records.len())
}

/// What `oblivio lab list` says of it.
pub(super) fn list() -> Result<String, CliError> {
    let line = |figure: &Manifest| {
        let overnight = if figure.overnight { " (hours: only if --figure names it)" } else { "" };
        format!("  {:16} {}{overnight}", figure.id, figure.title)
    };
    Ok(Manifest::all()?.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn plan(args: &EvaluationArgs) -> Plan {
    let plan = if args.quick { Plan::quick() } else { Plan::full() };
    let records = args.records.unwrap_or(plan.scale.records);
    let scale = Scale {
        leaf_level: args.levels.unwrap_or(plan.scale.leaf_level),
        records,
        warm_up: args.warm_up.unwrap_or(records / 4),
        llc_warm_up: args.fill_llc.unwrap_or(plan.scale.llc_warm_up),
    };
    let switches = args.switches.switches(&args.requests, plan.switches.llc_bytes);
    Plan { scale, switches, seed: args.runs.seed }
}
