//! `oblivio-lab`: the experiments behind the documentation, memory traces, and the simulator.

mod args;
mod error;
mod lab;
mod report;
mod simulate;
mod trace;

use std::process::ExitCode;

use oblivio_cli::help;

use args::{Cli, Command, TraceCommand};
use error::ProgramError;

fn main() -> ExitCode {
    oblivio_cli::run_program(args::command(), |cli: Cli| run(cli.command).map_err(|error| error.0))
}

fn run(command: Command) -> Result<(), ProgramError> {
    match command {
        Command::List => lab::list(),
        Command::Run { all, experiment } => match experiment {
            None => lab::run_all(&all),
            Some(experiment) => lab::run(&experiment),
        },
        Command::Draw(args) => lab::draw(&args),
        Command::Report(args) => report::run(&args),
        Command::Relay(args) => lab::relay(&args),
        Command::Trace { command } => match command {
            TraceCommand::Info(args) => trace::info(&args),
            TraceCommand::Convert(args) => trace::convert(&args),
            TraceCommand::Mix(args) => trace::mix(&args),
            TraceCommand::Make(args) => trace::make(&args),
            TraceCommand::Record(args) => trace::record(&args),
            TraceCommand::RecordSet(args) => trace::record_set(&args),
        },
        Command::Simulate(args) => simulate::run(&args),
        Command::Man { directory } => Ok(help::write_man_pages(args::command(), &directory)?),
        Command::Completions { shell } => Ok(help::print_completions(args::command(), shell)?),
    }
}
