//! `oblivio-lab run techniques`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use oblivio_lab::techniques::{Comparison, TechniquesPlan};

use super::{LabCommand, MeasuringArgs};
use crate::error::ProgramError;
use crate::trace;

/// What does each technique gain, alone and with others?
///
/// Runs the engine with each technique under scan, uniform and Zipf requests and under traces, and
/// counts the cost of a request: path accesses, bytes, AES blocks, stash. Nothing is timed.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run techniques --quick\n  \
        oblivio-lab run techniques --trace 403.gcc.gz 458.sjeng.gz\n\n\
        A trace is in any format that `oblivio-lab trace` reads. Its lines of 64 bytes are mapped \
        to blocks modulo the number of blocks.")]
pub(crate) struct TechniquesArgs {
    /// The level of the leaves (L), from 8 to 20 [default: 16; 10 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(8..=20))]
    levels: Option<u8>,
    /// Requests counted per technique and workload [default: 100,000; 3,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    requests: Option<u64>,
    /// Recorded traces, each as another workload.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    trace: Vec<PathBuf>,
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// A small tree and few requests: takes seconds, gives rough figures.
    #[arg(long)]
    quick: bool,
}

impl LabCommand for Comparison {
    type Args = TechniquesArgs;
    const DIRECTORY: &'static str = "lab-results";

    fn from_args(args: &TechniquesArgs, _: &Path) -> Result<Self, ProgramError> {
        let plan = if args.quick { TechniquesPlan::quick() } else { TechniquesPlan::full() };
        let levels = args.levels.unwrap_or(plan.leaf_level);
        let requests = args.requests.unwrap_or(plan.requests);
        let plan =
            TechniquesPlan { seed: args.measuring.seed, ..TechniquesPlan::new(levels, requests) };
        Ok(Self { plan, traces: trace::read_all(&args.trace)? })
    }

    fn threads(args: &TechniquesArgs) -> Option<NonZeroUsize> {
        args.measuring.threads
    }
}
