//! `oblivio-lab run blocks`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use oblivio_lab::blocks::{Blocks, BlocksFigure, BlocksPlan};

use super::LabCommand;
use super::runs::RunsArgs;
use super::trees::TreesDir;
use crate::args::InitialName;
use crate::error::ProgramError;

/// Where in the tree are blocks, and how does IR-Alloc change that?
///
/// Simulates path accesses, without timing, for the requests of programs and for random requests,
/// and counts the levels on which blocks lie and on which they are found. Each finished run is a
/// line of results.jsonl; if the command is interrupted, start it again to make the remaining runs.
/// The figures go to figures.json.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run blocks --quick\n  \
        oblivio-lab run blocks --figure fig03 fig06 --traces traces --levels 20 \
        --paths 100000000\n  \
        oblivio-lab report lab-results/blocks/figures.json\n\n\
        At --levels 24 a run takes about 2 GB: limit --jobs if memory is short.")]
pub(crate) struct BlocksArgs {
    /// Make only these figures, such as fig03. `oblivio-lab list` names them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    figure: Vec<String>,
    /// A small tree, few paths, and an LLC of 32 KiB: takes seconds, gives rough figures.
    #[arg(long)]
    quick: bool,
    /// The level of the leaves (L). A run takes about 2 GB at 24; each level less halves that
    /// [default: 24, the paper's; 16 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(10..=25))]
    levels: Option<u8>,
    /// Paths of fig03: 37 in 40 by programs, the rest by random requests. Each run of fig04 has a
    /// quarter of that. The paper has 4,000,000,000 [default: 400,000,000; 100,000 with --quick].
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000_000)
    )]
    paths: Option<u64>,
    /// The contents of the trees before the first request.
    #[arg(long, value_enum, default_value_t = InitialName::EachOnce)]
    initial: InitialName,
    /// The size of the LLC in front of the ORAM [default: 2048; 32 with --quick].
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u64).range(1..=65536))]
    llc_kib: Option<u64>,
    /// Keep initial trees and unfinished runs here, and continue from them: about 1.4 GB each at
    /// level 24; each level less halves that. Created if missing. A run is saved after each program
    /// until it is recorded; initial trees are kept.
    #[arg(long, value_name = "DIR")]
    trees: Option<PathBuf>,
    #[command(flatten)]
    runs: RunsArgs,
}

impl LabCommand for Blocks {
    type Args = BlocksArgs;
    const DIRECTORY: &'static str = "lab-results/blocks";

    fn from_args(args: &BlocksArgs, _: &Path) -> Result<Self, ProgramError> {
        let plan = if args.quick { BlocksPlan::quick() } else { BlocksPlan::full() };
        let plan = BlocksPlan {
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
            trees: TreesDir::from_args(args.trees.as_deref())?,
        })
    }

    fn threads(args: &BlocksArgs) -> Option<NonZeroUsize> {
        args.runs.jobs
    }
}
