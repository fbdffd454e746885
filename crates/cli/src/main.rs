//! `oblivio`: see what an oblivious array hides, and measure it.

mod args;
mod clock;
mod demo;
mod error;
mod files;
mod lab;
mod output;
mod progress;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command, LabCommand, RunCommand, ViewCommand};
use error::CliError;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            error.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::View { command: ViewCommand::Export(args) } => view::export(&args),
        Command::Lab { command: LabCommand::List } => lab::list(),
        Command::Lab { command: LabCommand::Run { experiment: RunCommand::StashStudy(args) } } => {
            lab::run_stash_study(&args)
        }
        Command::Lab { command: LabCommand::Draw(args) } => lab::draw_stash_study(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "oblivio", &mut script);
            output::print_bytes(&script)
        }
    }
}
