//! The command line of the program.

mod draw;
mod relay;
mod report;
mod simulate;
mod switch_effects;
mod switches;
mod trace;
mod trace_record;

pub(crate) use draw::*;
pub(crate) use relay::*;
pub(crate) use report::*;
pub(crate) use simulate::*;
pub(crate) use switch_effects::{in_switches, without_effect};
pub(crate) use switches::*;
pub(crate) use trace::*;
pub(crate) use trace_record::*;

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};
use oblivio_cli::help;

use crate::lab::{AllArgs, RunCommand};

const EXIT_CODES: &str = "\
Exit codes, the same as of `oblivio`:
  0   all went well
  1   something failed: a disk, the system, the engine
  2   the command line is not understood
  3   the input cannot be used: missing, empty, too large, not what it should be
  4   the output cannot be written
  9   locked: another process uses the folder of results
  10  no space left

If a program that `trace record` ran fails, this program ends with the same exit code, or with 128
plus the number of the signal that ended it.";

/// Rerun the measurements behind the documentation, record memory traces, and simulate a processor
/// with ORAM.
#[derive(Parser)]
#[command(name = "oblivio-lab", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Builds the command line, with help texts that the terminal wraps.
pub(crate) fn command() -> clap::Command {
    help::flowing(Cli::command())
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the experiments.
    List,
    /// Run one experiment, or all that make figures.
    ///
    /// With --quick or another option and no name: run evaluation, blocks, dram, roram and links in
    /// this order, and write a report of all their figures. The next run continues after an
    /// interruption.
    #[command(
        args_conflicts_with_subcommands = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  \
            oblivio-lab run --quick\n  \
            oblivio-lab run --traces traces --output results\n  \
            oblivio-lab run dram"
    )]
    Run {
        #[command(flatten)]
        all: AllArgs,
        #[command(subcommand)]
        experiment: Option<RunCommand>,
    },
    /// Show a results file again: its table and, if it has one, its plot. Measures nothing.
    #[command(after_help = "Examples:\n  \
            oblivio-lab draw lab-results/stash-study.json --output pictures\n  \
            oblivio-lab draw lab-results/alloc-search.json")]
    Draw(DrawArgs),
    /// Compare figures with the numbers that the papers state, on one page with plots and tables.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Imitate a slow link: forward connections between a client and a server on this machine.
    ///
    /// All connections share the link's rate in each direction. Each direction adds half of the
    /// link's delay. Buffers are bounded: a slow reader slows its writer.
    #[command(after_help = RELAY_EXAMPLES)]
    Relay(RelayArgs),
    /// Work with memory traces: the lines of memory that programs read and wrote.
    #[command(after_help = TRACE_FORMATS)]
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Run a trace on a simulated processor with ORAM, and report how long it takes and why.
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(Box<SimulateArgs>),
    /// Write man pages to a directory, one for each command.
    Man {
        /// The directory. Created if missing.
        directory: PathBuf,
    },
    /// Print a completion script for a shell.
    #[command(after_help = "Example:\n  \
            oblivio-lab completions bash > \
            ~/.local/share/bash-completion/completions/oblivio-lab")]
    Completions {
        /// The shell that the script is for.
        shell: clap_complete::Shell,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_help_has_a_line_that_ends_before_it_must() {
        lines::assert_are_full(command(), 500);
    }
}

// The program `oblivio` checks its help texts in the same way.
#[cfg(test)]
#[path = "../../../../crates/cli/src/help/lines.rs"]
mod lines;
