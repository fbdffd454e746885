//! `oblivio`: disks on storage that you do not trust.

mod advice;
mod args;
mod background;
mod clock;
mod core_dumps;
mod demo;
mod drawing;
mod error;
mod files;
mod lab;
mod output;
mod progress;
mod report;
mod simulate;
mod table;
mod trace;
mod view;
mod volume;

use std::process::ExitCode;

use clap::FromArgMatches;

use args::{
    Cli, Command, KeyCommand, LabCommand, RunCommand, ServeCommand, SharesCommand, TraceCommand,
    ViewCommand,
};
use error::CliError;

fn main() -> ExitCode {
    let matches = args::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is_said() {
                output::complain(&error);
            }
            error.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), CliError> {
    volume::outlive_file_size_limit()?;
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
        Command::Man { directory } => volume::man(&directory),
        Command::Trace { command: TraceCommand::Info(args) } => trace::info(&args),
        Command::Trace { command: TraceCommand::Convert(args) } => trace::convert(&args),
        Command::Trace { command: TraceCommand::Mix(args) } => trace::mix(&args),
        Command::Trace { command: TraceCommand::Make(args) } => trace::make(&args),
        Command::Trace { command: TraceCommand::Record(args) } => trace::record(&args),
        Command::Trace { command: TraceCommand::RecordSet(args) } => trace::record_set(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Lab { command: LabCommand::List } => lab::list(),
        Command::Lab { command: LabCommand::Run { all, experiment } } => match experiment {
            None => lab::run_all(&all),
            Some(RunCommand::StashStudy(args)) => lab::run_stash_study(&args),
            Some(RunCommand::AllocSearch(args)) => lab::run_alloc_search(&args),
            Some(RunCommand::Techniques(args)) => lab::run_techniques(&args),
            Some(RunCommand::Evaluation(args)) => lab::run_evaluation(&args),
            Some(RunCommand::Blocks(args)) => lab::run_blocks(&args),
            Some(RunCommand::RawTraffic(args)) => lab::run_raw_traffic(&args),
            Some(RunCommand::Dram(args)) => lab::run_dram(&args),
            Some(RunCommand::RangeMedia(args)) => lab::run_range_media(&args),
            Some(RunCommand::RangeStash(args)) => lab::run_range_stash(&args),
            Some(RunCommand::ShareOverflow(args)) => lab::run_share_overflow(&args),
            Some(RunCommand::S3oram(args)) => lab::run_s3oram(&args),
            Some(RunCommand::Roram(args)) => lab::run_roram(&args),
            Some(RunCommand::Links(args)) => lab::run_links(&args),
        },
        Command::Lab { command: LabCommand::Draw(args) } => lab::draw(&args),
        Command::Lab { command: LabCommand::Report(args) } => report::run(&args),
        Command::Lab { command: LabCommand::Relay(args) } => lab::relay(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut args::command(), "oblivio", &mut script);
            output::print_bytes(&script)
        }
    }
}
