//! `oblivio-lab run s3oram`.

use std::fs;
use std::sync::Arc;

use oblivio_cli::clock::{Stopwatch, processor_time_of_process, processor_time_of_thread};
use oblivio_cli::files::OutputDir;
use oblivio_cli::{output, progress};
use oblivio_lab::s3oram::{Clocks, Plan, Results, Servers, run};

use super::keep_and_show;
use super::share_servers::ShareServers;
use crate::args::S3oramArgs;
use crate::error::ProgramError;

/// `oblivio-lab run s3oram`.
pub(crate) fn run_s3oram(args: &S3oramArgs) -> Result<(), ProgramError> {
    let plan = match (args.quick, args.large) {
        (true, _) => Plan::quick(),
        (_, true) => Plan::large(),
        _ => Plan::full(),
    };
    let plan = if args.measure { Plan { shapes: Plan::full().shapes, ..plan } } else { plan };
    let output_dir = OutputDir::prepare(&args.output)?;
    let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let mut servers = match plan.shapes.is_empty() {
        true => None,
        false => Some(ShareServers::start(&folder, plan.servers())?),
    };
    let load_before = load();

    let stopwatch = Arc::new(Stopwatch::start());
    let wall = {
        let stopwatch = stopwatch.clone();
        Arc::new(move || stopwatch.elapsed())
    };
    // Client and servers are in this process.
    let clocks = Clocks {
        wall,
        thread: Arc::new(processor_time_of_thread),
        processors: Arc::new(processor_time_of_process),
    };
    let bar = progress::bar(plan.total_accesses());
    let measured = servers.as_mut().map(|servers| servers as &mut dyn Servers);
    let mut results = run(&plan, &clocks, measured, &|done| bar.inc(done))?;
    results.meanwhile = load_before.zip(load()).map(|(before, after)| {
        format!("load of the machine in the minute before it {before}, in the last one {after}")
    });
    bar.finish_and_clear();
    let seconds = stopwatch.elapsed().as_secs_f64();

    let text = format!("{}\n{}\n{seconds:.0} s", results.text(), results.summary());
    keep_and_show(&output_dir, "s3oram.json", &results.to_json()?, &text, args.json)
}

/// How many threads want a processor, on average over the last minute.
fn load() -> Option<String> {
    let loads = fs::read_to_string("/proc/loadavg").ok()?;
    loads.split(' ').next().map(str::to_owned)
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), ProgramError> {
    Ok(output::print(&Results::from_json(file)?.text())?)
}
