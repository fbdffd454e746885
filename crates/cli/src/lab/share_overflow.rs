//! `oblivio lab run share-overflow`.

use oblivio_lab::share_overflow::{OverflowStudy, Plan, run};

use super::threads;
use crate::args::ShareOverflowArgs;
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::files::OutputDir;
use crate::{output, progress};

/// With `--quick`.
const QUICK_EVICTIONS: u64 = 50_000;

/// `oblivio lab run share-overflow`.
pub(crate) fn run_share_overflow(args: &ShareOverflowArgs) -> Result<(), CliError> {
    let full = Plan::full();
    let evictions =
        args.evictions.unwrap_or(if args.quick { QUICK_EVICTIONS } else { full.evictions });
    let plan = Plan { evictions, seed: args.measuring.seed, ..full };
    let output_dir = OutputDir::prepare(&args.output)?;

    let stopwatch = Stopwatch::start();
    let bar = progress::bar(plan.total_evictions());
    let study = run(&plan, threads(args.measuring.threads), &|done| bar.inc(done))?;
    bar.finish_and_clear();
    let seconds = stopwatch.elapsed().as_secs_f64();

    let results = study.to_json()?;
    let path = output_dir.write("share-overflow.json", &results)?;
    if args.json {
        return output::print(&results);
    }
    let (table, path) = (study.table(), path.display());
    output::print(&format!("{table}\n{seconds:.0} s\nresults  {path}"))
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), CliError> {
    output::print(&OverflowStudy::from_json(file)?.table())
}
