//! `oblivio-lab run range-stash`.

use oblivio_cli::clock::Stopwatch;
use oblivio_cli::files::OutputDir;
use oblivio_cli::{output, progress};
use oblivio_lab::range_stash::{Plan, RangeStashStudy, run};

use super::{keep_and_show, threads};
use crate::args::RangeStashArgs;
use crate::error::ProgramError;

/// With `--quick`.
const QUICK_BLOCKS: u64 = 500_000;

/// `oblivio-lab run range-stash`.
pub(crate) fn run_range_stash(args: &RangeStashArgs) -> Result<(), ProgramError> {
    let full = Plan::full();
    let blocks = args.blocks.unwrap_or(if args.quick { QUICK_BLOCKS } else { full.blocks });
    let runs = args.seeds.unwrap_or(full.runs);
    let plan = Plan { blocks, runs, seed: args.measuring.seed, ..full };
    let output_dir = OutputDir::prepare(&args.output)?;

    let stopwatch = Stopwatch::start();
    let bar = progress::bar(plan.total_blocks());
    let study = run(&plan, threads(args.measuring.threads), &|done| bar.inc(done))?;
    bar.finish_and_clear();
    let seconds = stopwatch.elapsed().as_secs_f64();

    let table = format!("{}\n{seconds:.0} s", study.table());
    keep_and_show(&output_dir, "range-stash.json", &study.to_json()?, &table, args.json)
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), ProgramError> {
    Ok(output::print(&RangeStashStudy::from_json(file)?.table())?)
}
