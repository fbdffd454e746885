//! `oblivio-lab run share-overflow`.

use oblivio_cli::clock::Stopwatch;
use oblivio_cli::files::OutputDir;
use oblivio_cli::{output, progress};
use oblivio_lab::share_overflow::{OverflowStudy, Plan, run};

use super::{keep_and_show, threads};
use crate::args::ShareOverflowArgs;
use crate::error::ProgramError;

/// With `--quick`.
const QUICK_EVICTIONS: u64 = 50_000;

/// `oblivio-lab run share-overflow`.
pub(crate) fn run_share_overflow(args: &ShareOverflowArgs) -> Result<(), ProgramError> {
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

    let table = format!("{}\n{seconds:.0} s", study.table());
    keep_and_show(&output_dir, "share-overflow.json", &study.to_json()?, &table, args.json)
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), ProgramError> {
    Ok(output::print(&OverflowStudy::from_json(file)?.table())?)
}
