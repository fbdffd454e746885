//! `oblivio-lab run range-media`.

use oblivio_cli::files::OutputDir;
use oblivio_cli::{output, progress};
use oblivio_lab::range_media::{Plan, RangeMediaStudy, run};

use super::keep_and_show;
use crate::args::RangeMediaArgs;
use crate::error::ProgramError;

/// Blocks, unless it is said.
const BLOCKS: u64 = 1 << 18;
const QUICK_BLOCKS: u64 = 1 << 14;

/// For each figure.
const READ_BYTES: u64 = 16 << 20;

/// `oblivio-lab run range-media`.
pub(crate) fn run_range_media(args: &RangeMediaArgs) -> Result<(), ProgramError> {
    let blocks = args.blocks.unwrap_or(if args.quick { QUICK_BLOCKS } else { BLOCKS });
    let plan = Plan { blocks, read_bytes: READ_BYTES, seed: args.seed };
    let output_dir = OutputDir::prepare(&args.output)?;
    let bar = progress::bar_of(plan.total_figures(), "figures");
    let study = run(&plan, &|| bar.inc(1))?;
    bar.finish_and_clear();
    keep_and_show(&output_dir, "range-media.json", &study.to_json()?, &study.table(), args.json)
}

/// Shows a results file again.
pub(super) fn draw(file: &str) -> Result<(), ProgramError> {
    Ok(output::print(&RangeMediaStudy::from_json(file)?.table())?)
}
