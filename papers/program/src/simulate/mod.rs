//! `oblivio-lab simulate`: one run of the simulator.

mod report;

use std::cell::Cell;
use std::path::Path;

use indicatif::ProgressBar;
use oblivio_cli::clock::Stopwatch;
use oblivio_cli::error::CliError;
use oblivio_cli::{files, output, progress};
use oblivio_lab::evaluation::{EvaluationPlan, Switches, Variant, make, place};
use oblivio_sim::SimError;
use oblivio_sim::controller::OramSpec;
use oblivio_sim::dram::Dram;
use oblivio_sim::system::{self, Progress, SystemSpec, WarmUp};
use oblivio_sim::trace::Record;

use crate::args::{SimulateArgs, in_switches, without_effect};
use crate::error::ProgramError;
use crate::trace;
use report::Report;

/// Default number of counted records of a generated trace.
const MADE_RECORDS: u64 = 100_000;

/// The maximum size of a description of a machine, in bytes.
pub(crate) const SPEC_BYTES_MAX: u64 = 1 << 20;

/// Runs `oblivio-lab simulate`.
pub(crate) fn run(args: &SimulateArgs) -> Result<(), ProgramError> {
    let spec = spec(args)?;
    report_idle_switches(args, &spec)?;
    if args.print_spec {
        return print_spec(&spec, args.json);
    }
    let work = Work::from_args(args, lines(args, &spec)?)?;
    let Work { name, records, counted, warm_up } = work;
    let fills = WarmUp {
        llc_records: args.fill_llc,
        fills_small_tree: args.requests.fill_small_tree,
        records: warm_up,
    };

    let bar = progress::bar_of(counted + warm_up, "records");
    let watch =
        SimulationProgress { bar, warm_up, stopwatch: Stopwatch::start(), warm: Cell::new(None) };
    let outcome = system::run(&spec, records, fills, args.seed, &watch)
        .map_err(|error| refusal(args.spec.as_deref(), error))?;
    watch.bar.finish_and_clear();
    let seconds = watch.stopwatch.elapsed().as_secs_f64();

    let machine = args.spec.as_ref().map_or_else(
        || {
            let leaf_level = spec.oram.as_ref().map_or(args.levels, OramSpec::leaf_level);
            format!("{}, leaves on level {leaf_level}", args.variant)
        },
        |path| path.display().to_string(),
    );
    let measured_seconds = watch.warm.get().map(|warm| seconds - warm);
    let report =
        Report { machine, trace: name, seed: args.seed, spec, outcome, seconds, measured_seconds };
    Ok(output::print(&if args.json { report.json() } else { report.text() })?)
}

fn spec(args: &SimulateArgs) -> Result<SystemSpec, ProgramError> {
    if let Some(path) = &args.spec {
        let text = files::read_regular_text(path, SPEC_BYTES_MAX)?;
        let mut spec = SystemSpec::parse(&text, &path.display().to_string())?;
        if let Some(marks) = args.requests.write_marks {
            spec.controller.write_marks = marks;
        }
        return Ok(spec);
    }
    let spec = variant(args)?.spec(args.levels, &switches(args))?;
    // A machine from the command line has no file with keys: name switches instead.
    spec.check().map_err(|error| {
        let why = in_switches(&error.to_string());
        CliError::Usage(format!("{} cannot run with these switches: {why}", args.variant))
    })?;
    Ok(spec)
}

fn variant(args: &SimulateArgs) -> Result<&'static Variant, CliError> {
    Variant::named(&args.variant)
        .ok_or_else(|| CliError::Input(format!("unknown variant {}", args.variant)))
}

fn switches(args: &SimulateArgs) -> Switches {
    args.switches.switches(&args.requests, Switches::PAPER.llc_bytes)
}

fn has_small_tree(spec: &SystemSpec) -> bool {
    spec.oram.as_ref().is_some_and(|oram| oram.rho.is_some())
}

/// Reports switches that do not affect this machine. This is no error, since all machines of a
/// series may be run with the same switches.
fn report_idle_switches(args: &SimulateArgs, spec: &SystemSpec) -> Result<(), ProgramError> {
    let mut idle = match &args.spec {
        None => {
            let variant = variant(args)?;
            let leaf_level = variant.leaf_level(args.levels);
            if leaf_level != args.levels {
                output::print_remark(&format!(
                    "{} has its leaves on level {leaf_level}, the possible level nearest to \
                     --levels {}",
                    args.variant, args.levels
                ));
            }
            without_effect(&switches(args), &Switches::PAPER, |switches| {
                let spec = variant.spec(args.levels, switches).ok();
                let is_filled = args.fill_llc > 0 && spec.as_ref().is_some_and(has_small_tree);
                let beside = (switches.pages, is_filled && switches.fills_small_tree);
                // A printed description also has keys that the machine does not use.
                match args.print_spec {
                    true => (spec, None),
                    false => (spec.map(SystemSpec::without_unused), Some(beside)),
                }
            })
        }
        Some(_) => {
            let has_marks = args.requests.write_marks.is_some();
            let is_filled = args.fill_llc > 0 && has_small_tree(spec);
            let idle = [
                (has_marks && spec.oram.is_none(), "--write-marks"),
                (args.requests.fill_small_tree && !is_filled, "--fill-small-tree"),
            ];
            idle.into_iter().filter(|(is_idle, _)| *is_idle).map(|(_, name)| name).collect()
        }
    };
    if args.print_spec {
        let given = [
            (args.trace.is_some(), "TRACE"),
            (args.made.is_some(), "--made"),
            (args.records.is_some(), "--records"),
            (args.warm_up.is_some(), "--warm-up"),
            (args.fill_llc > 0, "--fill-llc"),
        ];
        idle.extend(given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name));
    }
    if !idle.is_empty() {
        let what = if args.print_spec { "what is printed" } else { "this machine" };
        output::print_remark(&format!("without effect on {what}: {}", idle.join(", ")));
    }
    Ok(())
}

fn print_spec(spec: &SystemSpec, as_json: bool) -> Result<(), ProgramError> {
    Ok(output::print(&if as_json {
        format!("{:#}", serde_json::json!(spec))
    } else {
        spec.to_toml()?
    })?)
}

/// The error for a machine that cannot run. It names the machine's file, if any.
fn refusal(spec: Option<&Path>, error: SimError) -> ProgramError {
    match spec {
        Some(path) => {
            let message = format!("the machine of {} cannot run: {error}", path.display());
            CliError::Input(message).into()
        }
        None => error.into(),
    }
}

/// The number of lines of the protected space. A built-in machine without an ORAM has as many lines
/// as one with an ORAM. Another machine without an ORAM has all lines of its DRAM.
fn lines(args: &SimulateArgs, spec: &SystemSpec) -> Result<u64, ProgramError> {
    Ok(match &spec.oram {
        Some(oram) => oram.lines(),
        None if args.spec.is_none() => EvaluationPlan::lines(args.levels),
        None => Dram::new(&spec.dram, spec.channels)?.lines(),
    })
}

/// The records of a run.
struct Work {
    name: String,
    records: Vec<Record>,
    counted: u64,
    warm_up: u64,
}

impl Work {
    fn from_args(args: &SimulateArgs, lines: u64) -> Result<Self, ProgramError> {
        let (seed, fill) = (args.seed, args.fill_llc);
        let scale = |records: u64| (records, args.warm_up.unwrap_or(records / 4));
        let (trace, (counted, warm_up)) = match (&args.trace, &args.made) {
            (Some(path), _) => {
                let trace = trace::read(path)?;
                let length = trace.records().len() as u64;
                let scale = args.records.map_or_else(
                    || {
                        let warm_up = args.warm_up.unwrap_or(length / 5);
                        let left = length.saturating_sub(warm_up);
                        if left == 0 {
                            output::print_remark(&format!(
                                "the warm-up takes all {length} records of the trace: it is \
                                 repeated, and {length} more count"
                            ));
                        }
                        (if left > 0 { left } else { length }, warm_up)
                    },
                    scale,
                );
                (trace, scale)
            }
            (None, made) => {
                let (counted, warm_up) = scale(args.records.unwrap_or(MADE_RECORDS));
                let name = made.as_deref().unwrap_or_default();
                let trace = make(name, (fill + counted + warm_up) as usize, lines, seed)?;
                (trace, (counted, warm_up))
            }
        };
        let all = fill + counted + warm_up;
        let records = place(&trace, all, lines, args.requests.pages.into(), seed)?;
        Ok(Self { name: trace.name().to_owned(), records, counted, warm_up })
    }
}

/// Shows the progress of a run, and notes when its warm-up ends.
struct SimulationProgress {
    bar: ProgressBar,
    warm_up: u64,
    stopwatch: Stopwatch,
    /// The seconds on the stopwatch at which the warm-up ended; `None` before.
    warm: Cell<Option<f64>>,
}

impl Progress for SimulationProgress {
    fn records(&self, done: u64) {
        self.bar.set_position(done);
        if done >= self.warm_up && self.warm.get().is_none() {
            self.warm.set(Some(self.stopwatch.elapsed().as_secs_f64()));
        }
    }
}
