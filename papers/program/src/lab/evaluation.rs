//! `oblivio-lab run evaluation`.

use std::path::Path;

use oblivio_cli::error::CliError;
use oblivio_cli::files::{self, OutputDir};
use oblivio_cli::output;
use oblivio_lab::evaluation::{
    Manifest, Plan, Programs, Run, RunRecord, Scale, Switches, figures, kept_runs, run,
};
use oblivio_lab::{LabError, Trees, counted_runs};
use oblivio_sim::system::SystemSpec;

use super::made::{FIGURES_FILE, Made};
use super::runs::{self, Here, Making, RunsFile};
use super::trees::TreesDir;
use crate::args::{EvaluationArgs, in_switches, without_effect};
use crate::error::ProgramError;
use crate::simulate::SPEC_BYTES_MAX;

/// More than any manifest has.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// `oblivio-lab run evaluation`.
pub(crate) fn run_evaluation(args: &EvaluationArgs) -> Result<(), ProgramError> {
    let manifests = manifests(args)?;
    let plan = plan(args).with_machines_of(&manifests)?;
    if args.recorded {
        return recorded(&plan, &manifests, args)?.print(args.runs.json);
    }
    let programs = runs::programs(&args.runs)?;
    check_switches(&plan, &default_plan(args).switches, &manifests, &programs)?;
    let trees = args.trees.as_deref().map(TreesDir::prepare).transpose()?;
    let trees = trees.as_ref().map(|trees| trees as &dyn Trees);
    let making = Making::new(&args.runs, &programs, &args.output);
    make(&plan, &manifests, &making, trees)?.print(args.runs.json)
}

/// The figures that are asked for: of files, or those that are built in.
fn manifests(args: &EvaluationArgs) -> Result<Vec<Manifest>, ProgramError> {
    if args.manifest.is_empty() {
        return Ok(Manifest::chosen(&args.figure)?);
    }
    let files = args.manifest.iter().map(|path| manifest(path));
    let given = files.collect::<Result<Vec<_>, _>>()?;
    Manifest::check_shown_by(&given)?;
    Ok(Manifest::chosen_of(given, &args.figure)?)
}

fn manifest(path: &Path) -> Result<Manifest, ProgramError> {
    let text = files::read_regular_text(path, MANIFEST_BYTES_MAX)?;
    let beside = |name: &str| {
        let file = path.with_file_name(name);
        files::read_regular_text(&file, SPEC_BYTES_MAX)
            .map_err(|error| LabError::Input(error.to_string()))
    };
    Ok(Manifest::read(&path.display().to_string(), &text, &beside)?)
}

/// Makes the runs that are not there yet, and the figures.
pub(super) fn make(
    plan: &Plan,
    manifests: &[Manifest],
    making: &Making<'_>,
    trees: Option<&dyn Trees>,
) -> Result<Made, ProgramError> {
    let Making { programs, jobs, output } = making;
    let wanted = plan.runs(manifests, programs)?;
    let output_dir = OutputDir::prepare(output)?;
    output_dir.refuse_directory(FIGURES_FILE)?;
    let (file, kept) = RunsFile::open(&output_dir)?;

    let host = Here::<RunRecord>::new(file, "records");
    let records = run(plan, &wanted, programs, &kept, *jobs, &host, trees)?;
    let figures = figures(manifests, plan, programs, &records)?;
    runs::keep(figures, &output_dir, &host, records.len())
}

/// The figures of runs that are recorded, and nothing else.
fn recorded(
    plan: &Plan,
    manifests: &[Manifest],
    args: &EvaluationArgs,
) -> Result<Made, ProgramError> {
    let (output_dir, file, kept) = RunsFile::open_recorded::<RunRecord>(&args.output)?;
    output_dir.refuse_directory(FIGURES_FILE)?;
    let programs = Programs::of_runs(&kept);
    let (records, missing) = kept_runs(plan, &plan.runs(manifests, &programs)?, &kept)?;
    if records.is_empty() {
        return Err(CliError::Input(format!(
            "none of the {} of these figures is recorded in {}: ask for those that are, with the --records, --warm-up, \
             --levels and other switches that they were made with",
            counted_runs(missing),
            args.output.display()
        )).into());
    }
    if missing > 0 {
        let (are, them) = if missing == 1 { ("is", "it") } else { ("are", "them") };
        let runs = counted_runs(missing);
        output::remark(&format!(
            "{runs} of these figures {are} not recorded: what needs {them} is left open"
        ));
    }
    let host = Here::<RunRecord>::new(file, "records");
    let figures = figures(manifests, plan, &programs, &records)?;
    runs::keep(figures, &output_dir, &host, records.len())
}

/// What `oblivio-lab list` says of it.
pub(super) fn list() -> Result<String, ProgramError> {
    let all = Manifest::all()?;
    let width = all.iter().map(|figure| figure.id.len()).max().unwrap_or(0);
    let line = |figure: &Manifest| {
        let overnight = if figure.overnight { " (only if --figure names it)" } else { "" };
        format!("  {:width$} {}{overnight}", figure.id, figure.title)
    };
    Ok(all.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Refuses switches under which a machine cannot run that can run without them, and names those that change nothing.
fn check_switches(
    plan: &Plan,
    default: &Switches,
    manifests: &[Manifest],
    programs: &Programs,
) -> Result<(), ProgramError> {
    let with = |switches: &Switches| Plan { switches: switches.clone(), ..plan.clone() };
    let machines = |switches: &Switches| -> Result<Vec<_>, LabError> {
        let plan = with(switches);
        let runs = plan.runs(manifests, programs)?;
        let machine = |run: &Run| {
            let spec = plan.spec(run)?;
            let has_small_tree = spec.oram.as_ref().is_some_and(|oram| oram.rho.is_some());
            let is_filled = has_small_tree && run.scale.llc_warm_up > 0;
            let beside = (run.switches.pages, is_filled && run.switches.fills_small_tree);
            Ok((run.variant.clone(), spec, beside))
        };
        runs.iter().map(machine).collect()
    };
    for (variant, spec, _) in machines(&plan.switches)? {
        if let Err(error) = spec.check() {
            let without = machines(default)?;
            let mut without = without.iter().filter(|(name, ..)| *name == variant);
            if without.all(|(_, spec, _)| spec.check().is_ok()) {
                let why = in_switches(&error.to_string());
                let message = format!("the machine {variant} cannot run like this: {why}");
                return Err(CliError::Usage(message).into());
            }
        }
    }
    let idle = without_effect(&plan.switches, default, |switches| {
        let machine = |(_, spec, beside): (_, SystemSpec, _)| (spec.without_unused(), beside);
        machines(switches).ok().map(|all| all.into_iter().map(machine).collect::<Vec<_>>())
    });
    if !idle.is_empty() {
        output::remark(&format!("without effect on these figures: {}", idle.join(", ")));
    }
    Ok(())
}

fn default_plan(args: &EvaluationArgs) -> Plan {
    if args.quick { Plan::quick() } else { Plan::full() }
}

fn plan(args: &EvaluationArgs) -> Plan {
    let plan = default_plan(args);
    let records = args.records.unwrap_or(plan.scale.records);
    let scale = Scale {
        leaf_level: args.levels.unwrap_or(plan.scale.leaf_level),
        records,
        warm_up: args.warm_up.unwrap_or(records / 4),
        llc_warm_up: args.fill_llc.unwrap_or(plan.scale.llc_warm_up),
    };
    let switches = args.switches.switches(&args.requests, plan.switches.llc_bytes);
    let checks_commands = args.check_commands;
    Plan { scale, switches, seed: args.runs.seed, checks_commands, ..plan }
}
