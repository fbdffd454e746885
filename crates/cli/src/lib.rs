//! The program `oblivio`: disks on storage that you do not trust.
//!
//! Another program that must behave like this one, such as `oblivio-lab`, uses the public modules
//! for output, errors with exit codes, files and help texts.

mod advice;
mod args;
mod background;
pub mod clock;
mod core_dumps;
mod demo;
mod drawing;
pub mod error;
pub mod files;
pub mod help;
pub mod output;
pub mod progress;
pub mod signals;
pub mod table;
mod view;
mod volume;

use std::env;
use std::process::ExitCode;

use clap::FromArgMatches;

use args::{Cli, Command, KeyCommand, ServeCommand, SharesCommand, ViewCommand};
pub use args::{WorkloadName, link_help};
use error::CliError;

/// Commands of the program `oblivio-lab` that this program does not have.
const LAB_COMMANDS: [&str; 3] = ["lab", "simulate", "trace"];

/// Runs `oblivio` with the arguments of this process. Returns its exit code.
pub fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next().filter(|it| it != "help").or_else(|| arguments.next());
    if let Some(name) =
        LAB_COMMANDS.into_iter().find(|name| first.as_deref() == Some(name.as_ref()))
    {
        output::name_program("oblivio");
        let error = CliError::Usage(format!(
            "`{name}` is a command of the program oblivio-lab: run `cargo install --path \
             papers/program` in the repository, then `oblivio-lab help`"
        ));
        output::print_error(&error);
        return error.exit_code();
    }
    run_program(args::command(), |cli: Cli| run(cli.command))
}

/// Parses the command line of the program that `command` describes, passes it to `run`, and reports
/// an error. Returns the exit code.
pub fn run_program<C: FromArgMatches>(
    command: clap::Command,
    run: impl FnOnce(C) -> Result<(), CliError>,
) -> ExitCode {
    output::name_program(command.get_name());
    let matches = command.get_matches();
    let typed = C::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match signals::outlive_file_size_limit().and_then(|()| run(typed)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is_reported() {
                output::print_error(&error);
            }
            error.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), CliError> {
    if command.holds_keys() {
        core_dumps::forbid()?;
    }
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Plan(args) => volume::plan(&args),
        Command::Create(args) => volume::create(&args),
        Command::Info(args) => volume::info(&args),
        Command::Check(args) => volume::check(&args),
        Command::Copy(args) => volume::copy(&args),
        Command::Remove(args) => volume::remove_volume(&args),
        Command::Rescue(args) => volume::rescue(&args),
        Command::Serve { command: ServeCommand::Nbd(args) } => {
            background::run(&args.background, || volume::serve_nbd(&args))
        }
        Command::Serve { command: ServeCommand::Store(args) } => volume::serve_store(&args),
        Command::Serve { command: ServeCommand::Shares(args) } => volume::serve_shares(&args),
        Command::Shares { command: SharesCommand::Repair(args) } => volume::repair_shares(&args),
        Command::Mount(args) => volume::mount(&args),
        Command::Umount(args) => volume::umount(&args),
        Command::Key { command: KeyCommand::Add(args) } => volume::add(&args),
        Command::Key { command: KeyCommand::List(args) } => volume::list(&args),
        Command::Key { command: KeyCommand::Remove(args) } => volume::remove(&args),
        Command::Key { command: KeyCommand::Client(args) } => volume::client_key(&args),
        Command::Key { command: KeyCommand::Server(args) } => volume::server_key(&args),
        Command::View { command: ViewCommand::Export(args) } => view::export(&args),
        Command::View { command: ViewCommand::Show(args) } => view::show(&args),
        Command::View { command: ViewCommand::Record(args) } => volume::record_view(&args),
        Command::Bench(args) => volume::bench(&args),
        Command::Man { directory } => help::write_man_pages(args::command(), &directory),
        Command::Completions { shell } => help::print_completions(args::command(), shell),
    }
}
