//! `oblivio-lab run evaluation`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use oblivio_cli::error::CliError;
use oblivio_cli::files;
use oblivio_cli::output;
use oblivio_lab::LabError;
use oblivio_lab::evaluation::{
    Evaluation, EvaluationPlan, Manifest, Programs, Run, Scale, Switches,
};
use oblivio_sim::system::SystemSpec;

use super::LabCommand;
use super::runs::{RunsArgs, check_recorded};
use super::trees::TreesDir;
use crate::args::{RequestArgs, SwitchArgs, in_switches, without_effect};
use crate::error::ProgramError;
use crate::simulate::SPEC_BYTES_MAX;

/// The maximum size of a manifest, in bytes.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// How fast is a processor with IR-ORAM, and why? The timed figures of the paper.
///
/// Runs the simulator for every figure, each machine and workload once. Each run is a line of
/// results.jsonl, so that the next run continues after an interruption. The figures go to
/// figures.json.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run evaluation --quick\n  \
        oblivio-lab run evaluation --quick --figure fig10 fig14\n  \
        oblivio-lab run evaluation --traces traces --levels 20 --pace gap --output results-gap\n\n\
        At --levels 24 a run takes about 2 GB: limit --jobs if memory is short.")]
pub(crate) struct EvaluationArgs {
    /// Make only these figures, such as fig10. `oblivio-lab list` names them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    figure: Vec<String>,
    /// Make the figures of these TOML files instead of the built-in ones. docs/add-a-figure.md
    /// describes the format.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    manifest: Vec<PathBuf>,
    /// A small tree, few records, and an LLC of 32 KiB: takes minutes, gives rough figures.
    #[arg(long)]
    quick: bool,
    /// The level of the leaves (L). At 24, a run takes about 2 GB, and all runs share another 1.4
    /// GB; each level less halves that. fig16 goes one level further [default: 24, the paper's; 16
    /// with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(10..=25))]
    levels: Option<u8>,
    /// Records of each trace to measure [default: 1,000,000; 6,000 with --quick]. A shorter trace
    /// is repeated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=20_000_000))]
    records: Option<u64>,
    /// Records of the warm-up, which fill the caches [default: a quarter of --records].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=20_000_000))]
    warm_up: Option<u64>,
    /// Records to run before the warm-up, without timing. They fill the LLC and, with
    /// --fill-small-tree, the small tree of Rho [default: 2,000,000, all records of a recorded
    /// trace; 0 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=20_000_000))]
    fill_llc: Option<u64>,
    #[command(flatten)]
    switches: SwitchArgs,
    #[command(flatten)]
    requests: RequestArgs,
    /// Make no runs: draw only the figures of the runs recorded in --output, without traces.
    #[arg(long, conflicts_with_all = ["traces", "trees", "jobs"])]
    recorded: bool,
    /// Check each DRAM command against the timing rules, independently of the scheduler; a
    /// violation ends the evaluation. Results do not change, and records have the number of checked
    /// commands. Runs take several times as long.
    #[arg(long)]
    check_commands: bool,
    /// Keep initial trees here, and start runs from them: about 1.4 GB each at level 24; each level
    /// less halves that. Each ORAM has its own tree, for all workloads. Created if missing.
    #[arg(long, value_name = "DIR")]
    trees: Option<PathBuf>,
    #[command(flatten)]
    runs: RunsArgs,
}

impl LabCommand for Evaluation {
    type Args = EvaluationArgs;
    const DIRECTORY: &'static str = "lab-results/evaluation";

    fn from_args(args: &EvaluationArgs, output: &Path) -> Result<Self, ProgramError> {
        let manifests = manifests(args)?;
        let plan = plan(args).with_machines_of(&manifests)?;
        if args.recorded {
            check_recorded(output)?;
            return Ok(Self { plan, manifests, programs: None, trees: None });
        }
        let programs = args.runs.programs()?;
        check_switches(&plan, &default_plan(args).switches, &manifests, &programs)?;
        let trees = TreesDir::from_args(args.trees.as_deref())?;
        Ok(Self { plan, manifests, programs: Some(programs), trees })
    }

    fn threads(args: &EvaluationArgs) -> Option<NonZeroUsize> {
        args.runs.jobs
    }
}

/// Reads the requested figures from files, or returns the built-in ones.
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

/// Lists the figures of the evaluation, for `oblivio-lab list`.
pub(super) fn list() -> Result<String, ProgramError> {
    let all = Manifest::all()?;
    let width = all.iter().map(|figure| figure.id.len()).max().unwrap_or(0);
    let line = |figure: &Manifest| {
        let overnight = if figure.overnight { " (only if --figure names it)" } else { "" };
        format!("  {:width$} {}{overnight}", figure.id, figure.title)
    };
    Ok(all.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Refuses switches under which a machine cannot run, if it could run without them. Reports
/// switches that change nothing.
fn check_switches(
    plan: &EvaluationPlan,
    default: &Switches,
    manifests: &[Manifest],
    programs: &Programs,
) -> Result<(), ProgramError> {
    let with = |switches: &Switches| EvaluationPlan { switches: switches.clone(), ..plan.clone() };
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
                let message = format!("{variant} cannot run with these switches: {why}");
                return Err(CliError::Usage(message).into());
            }
        }
    }
    let idle = without_effect(&plan.switches, default, |switches| {
        let machine = |(_, spec, beside): (_, SystemSpec, _)| (spec.without_unused(), beside);
        machines(switches).ok().map(|all| all.into_iter().map(machine).collect::<Vec<_>>())
    });
    if !idle.is_empty() {
        output::print_remark(&format!("without effect on these figures: {}", idle.join(", ")));
    }
    Ok(())
}

fn default_plan(args: &EvaluationArgs) -> EvaluationPlan {
    if args.quick { EvaluationPlan::quick() } else { EvaluationPlan::full() }
}

fn plan(args: &EvaluationArgs) -> EvaluationPlan {
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
    EvaluationPlan { scale, switches, seed: args.runs.seed, checks_commands, ..plan }
}
