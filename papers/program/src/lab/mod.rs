//! Experiments as commands, and the driver that runs them.

mod all;
mod alloc_search;
mod blocks;
mod evaluation;
mod models;
mod relay;
mod runs;
mod s3oram;
mod share_servers;
mod stashes;
mod techniques;
mod trees;

pub(crate) use all::{AllArgs, run_all};
pub(crate) use relay::relay;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Subcommand};
use oblivio_cli::error::CliError;
use oblivio_cli::files::{self, OutputDir};
use oblivio_cli::output;
use oblivio_cli::output::shell_word;
use oblivio_lab::report::{self, Figure};
use oblivio_lab::{Experiment, LabError, blocks as blocks_lab, experiment_of, experiments};

use crate::args::{Cli, DrawArgs};
use crate::error::ProgramError;
use runs::{LabHost, RunsFile};

/// The maximum size of a results file, in bytes.
const RESULTS_BYTES_MAX: u64 = 64 << 20;

/// The file with all figures of an experiment.
const FIGURES_FILE: &str = "figures.json";

/// An experiment as a command.
pub(crate) trait LabCommand: Experiment {
    /// The arguments that only this experiment has.
    type Args: Args;

    /// The default of `--output`.
    const DIRECTORY: &'static str;

    /// Builds the experiment from its arguments. `output` is the directory for its results.
    fn from_args(args: &Self::Args, output: &Path) -> Result<Self, ProgramError>;

    /// The number of threads, if the arguments give one.
    fn threads(_: &Self::Args) -> Option<NonZeroUsize> {
        None
    }
}

// A doc comment would become the help of each command.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// Directory for the results. Created if missing. Results of an earlier run are replaced; runs
    /// recorded there are not repeated.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    json: bool,
}

macro_rules! commands {
    ($($name:ident $module:ident::$experiment:ident,)*) => {
        #[derive(Subcommand)]
        pub(crate) enum RunCommand {
            $(#[command(
                name = <oblivio_lab::$module::$experiment as Experiment>::NAME,
                mut_arg("output", |output| output
                    .required(false)
                    .default_value(<oblivio_lab::$module::$experiment as LabCommand>::DIRECTORY))
            )]
            $name {
                #[command(flatten)]
                args: Box<<oblivio_lab::$module::$experiment as LabCommand>::Args>,
                #[command(flatten)]
                output: OutputArgs,
            },)*
        }

        /// Runs `oblivio-lab run` with the name of an experiment.
        pub(crate) fn run(command: &RunCommand) -> Result<(), ProgramError> {
            match command {
                $(RunCommand::$name { args, output } => {
                    run_one::<oblivio_lab::$module::$experiment>(args, output)
                })*
            }
        }

        /// Prints the tables of the results `text` of the experiment `name`, and writes its plots.
        fn draw_named(name: &str, args: &DrawArgs, text: &str) -> Result<(), ProgramError> {
            match name {
                $(<oblivio_lab::$module::$experiment as Experiment>::NAME => {
                    draw_one::<oblivio_lab::$module::$experiment>(args, text)
                })*
                _ => Err(not_results(args, &format!("unknown experiment {name}"))),
            }
        }
    };
}

experiments!(commands);

fn run_one<E: LabCommand>(args: &E::Args, output: &OutputArgs) -> Result<(), ProgramError> {
    let experiment = E::from_args(args, &output.output)?;
    let ExperimentOutput { text, results, end, .. } =
        perform(experiment, threads(E::threads(args)), &output.output)?;
    Ok(output::print(&if output.json { results } else { format!("{text}\n{end}") })?)
}

/// The output of an experiment.
struct ExperimentOutput {
    figures: Vec<Figure>,
    text: String,
    results: String,
    /// The amount of work and the files written, in words.
    end: String,
}

/// Runs an experiment, and writes its results, figures and plots to the directory `output`.
fn perform<E: Experiment>(
    experiment: E,
    threads: NonZeroUsize,
    output: &Path,
) -> Result<ExperimentOutput, ProgramError> {
    let output_dir = OutputDir::prepare(output)?;
    output_dir.refuse_directory(E::RESULTS)?;
    let (runs_path, file, recorded) = match experiment.runs_file() {
        None => (None, None, Vec::new()),
        Some(name) => {
            let (file, recorded) = RunsFile::open(&output_dir, name)?;
            (Some(output_dir.path(name)), Some(file), recorded)
        }
    };
    let host = LabHost::new(file, E::STEPS);
    let results = experiment.run(&recorded, threads, &host)?;
    let (runs, seconds) = host.finish();

    let runs = runs.map(|runs| format!("{runs}, ")).unwrap_or_default();
    let mut end = vec![format!("{runs}{seconds:.0} s")];
    end.extend(runs_path.map(|path| format!("runs     {}", path.display())));
    let mut write = |what: &str, file: &str, contents: &str| -> Result<(), ProgramError> {
        let path = output_dir.write(file, contents)?;
        end.push(format!("{what:8} {}", path.display()));
        Ok(())
    };
    let json = E::to_json(&results)?;
    let figures = E::figures(&results);
    if E::RESULTS != FIGURES_FILE {
        write("results", E::RESULTS, &json)?;
    }
    if !figures.is_empty() || E::RESULTS == FIGURES_FILE {
        let figures = serde_json::to_string_pretty(&figures).map_err(LabError::from)?;
        write("figures", FIGURES_FILE, &figures)?;
    }
    for (file, picture) in E::pictures(&results)? {
        write("plot", file, &picture)?;
    }
    Ok(ExperimentOutput { figures, text: E::text(&results), results: json, end: end.join("\n") })
}

/// Runs `oblivio-lab list`.
pub(crate) fn list() -> Result<(), ProgramError> {
    let cli = Cli::command();
    let experiments = cli.find_subcommand("run").map(clap::Command::get_subcommands);
    let lines = experiments.into_iter().flatten().map(|experiment| {
        let about = experiment.get_about().map(ToString::to_string).unwrap_or_default();
        format!("{:14} {about}", experiment.get_name())
    });
    let experiments = lines.collect::<Vec<_>>().join("\n");
    let blocks = blocks_lab::FIGURES.iter().map(|it| format!("  {:15} {}", it.id, it.title));
    Ok(output::print(&format!(
        "{experiments}\n\nfigures of evaluation:\n{}\n\nfigures of blocks:\n{}\n\n\
         dram, roram and links make their own figures, and are chosen as a whole: \
         `oblivio-lab run --figure fig10 fig03 dram roram links`",
        evaluation::list()?,
        blocks.collect::<Vec<_>>().join("\n")
    ))?)
}

/// Runs `oblivio-lab draw`.
pub(crate) fn draw(args: &DrawArgs) -> Result<(), ProgramError> {
    let text = files::read_regular_text(&args.results, RESULTS_BYTES_MAX)?;
    match experiment_of(&text) {
        Ok(name) => draw_named(&name, args, &text),
        Err(_) if report::read(&text).is_ok() => {
            let path = args.results.display();
            let word = shell_word(path.to_string());
            Err(CliError::Input(format!(
                "{path} holds figures, not results: oblivio-lab report {word} shows them"
            ))
            .into())
        }
        Err(error) => Err(not_results(args, &error.to_string())),
    }
}

fn draw_one<E: Experiment>(args: &DrawArgs, text: &str) -> Result<(), ProgramError> {
    let results = E::from_json(text)?;
    let mut shown = E::text(&results);
    for (file, picture) in E::pictures(&results)? {
        let path = OutputDir::prepare(&args.output)?.write(file, &picture)?;
        shown = format!("{shown}\nplot     {}", path.display());
    }
    Ok(output::print(&shown)?)
}

fn not_results(args: &DrawArgs, why: &str) -> ProgramError {
    let path = args.results.display();
    CliError::Input(format!("{path}: {why}; give a results file that this program wrote")).into()
}

/// The given number of threads, or one per processor.
fn threads(typed: Option<NonZeroUsize>) -> NonZeroUsize {
    typed.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
}

// Not a doc comment, for the same reason as above.
#[derive(Args)]
pub(crate) struct MeasuringArgs {
    /// The seed of all runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads [default: one per processor]. They change the time, not the results.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}
