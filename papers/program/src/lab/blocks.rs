//! `oblivio-lab run blocks`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use oblivio_lab::blocks::{Blocks, BlocksFigure, Plan};

use super::LabCommand;
use super::runs::RunsArgs;
use super::trees::TreesDir;
use crate::args::InitialName;
use crate::error::ProgramError;

/// Where are blocks in the tree, and what does IR-Alloc make of it?
///
/// Makes paths without timing them, as programs and as chance ask for them, and looks where blocks
/// are and where they were found. Keeps each run as a line of results.jsonl: what was interrupted
/// goes on with the next run. The figures go to figures.json.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  oblivio-lab run blocks --quick\n  oblivio-lab run blocks --figure fig03 fig06 --traces traces --levels 20 --paths 100000000\n  oblivio-lab report lab-results/blocks/figures.json\n\nAt --levels 24 a run takes about 2 GB: give --jobs if there is not as much for each processor."
)]
pub(crate) struct BlocksArgs {
    /// Make these figures alone: fig03, say. `oblivio-lab list` names them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    figure: Vec<String>,
    /// A small tree, few paths, and an LLC of 32 KiB: some seconds, and rough figures.
    #[arg(long)]
    quick: bool,
    /// The level of the leaves (L). A run takes about 2 GB at 24, and half for each level less
    /// [default: 24, the paper's; 16 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(10..=25))]
    levels: Option<u8>,
    /// Paths of fig03, of which programs make 37 in 40 and chance the rest; each run of fig04 has a
    /// quarter. The paper has 4,000,000,000 [default: 400,000,000; 100,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000_000))]
    paths: Option<u64>,
    /// What trees hold at first.
    #[arg(long, value_enum, default_value_t = InitialName::EachOnce)]
    initial: InitialName,
    /// The size of the LLC that programs run behind [default: 2048; 32 with --quick].
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u64).range(1..=65536))]
    llc_kib: Option<u64>,
    /// Keep initial trees and runs under way here, and go on from them: about 1.4 GB each at level
    /// 24, and half for each level less. Made if missing. A run is kept after each program, until
    /// it is recorded; initial trees stay.
    #[arg(long, value_name = "DIR")]
    trees: Option<PathBuf>,
    #[command(flatten)]
    runs: RunsArgs,
}

impl LabCommand for Blocks {
    type Args = BlocksArgs;
    const DIRECTORY: &'static str = "lab-results/blocks";

    fn typed(args: &BlocksArgs, _: &Path) -> Result<Self, ProgramError> {
        let plan = if args.quick { Plan::quick() } else { Plan::full() };
        let plan = Plan {
            leaf_level: args.levels.unwrap_or(plan.leaf_level),
            paths: args.paths.unwrap_or(plan.paths),
            initial: args.initial.into(),
            llc_bytes: args.llc_kib.map_or(plan.llc_bytes, |kib| kib << 10),
            seed: args.runs.seed,
        };
        Ok(Self {
            plan,
            chosen: BlocksFigure::chosen(&args.figure)?,
            programs: args.runs.programs()?,
            trees: TreesDir::typed(args.trees.as_deref())?,
        })
    }

    fn threads(args: &BlocksArgs) -> Option<NonZeroUsize> {
        args.runs.jobs
    }
}
