//! `oblivio lab run s3oram`.

use std::sync::Arc;

use oblivio_lab::s3oram::{Clock, Plan, Results, run};

use super::keep_and_show;
use super::share_servers::ShareServers;
use crate::args::S3oramArgs;
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::{output, progress};

/// `oblivio lab run s3oram`.
pub(crate) fn run_s3oram(args: &S3oramArgs) -> Result<(), CliError> {
    let plan = if args.quick { Plan::quick() } else { Plan::full() };
    let is_measured = args.measure || !args.quick;
    let plan = Plan { shapes: if is_measured { Plan::full().shapes } else { Vec::new() }, ..plan };
    let output_dir = OutputDir::prepare(&args.output)?;
    let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let mut servers = ShareServers::start(&folder)?;

    let stopwatch = Arc::new(Stopwatch::start());
    let clock: Clock = {
        let stopwatch = stopwatch.clone();
        Arc::new(move || stopwatch.elapsed())
    };
    let bar = progress::bar(plan.total_accesses());
    let results = run(&plan, &clock, &mut servers, &|done| bar.inc(done))?;
    bar.finish_and_clear();
    let seconds = stopwatch.elapsed().as_secs_f64();

    let text = format!("{}\n{}\n{seconds:.0} s", results.text(), results.summary());
    keep_and_show(&output_dir, "s3oram.json", &results.to_json()?, &text, args.json)
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), CliError> {
    output::print(&Results::from_json(file)?.text())
}
