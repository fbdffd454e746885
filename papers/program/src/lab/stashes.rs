//! Experiments on stashes and on bucket overflow: `oblivio-lab run stash-study`, `raw-traffic`,
//! `range-stash` and `share-overflow`.

use std::num::NonZeroUsize;
use std::path::Path;

use clap::{Args, ValueEnum};
use oblivio_cli::WorkloadName;
use oblivio_lab::stash_study::Scheme;
use oblivio_lab::{range_stash, raw_traffic, share_overflow, stash_study};

use super::{LabCommand, MeasuringArgs};
use crate::error::ProgramError;

/// How large must the stash be, so that it overflows with probability at most 2^-80?
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run stash-study --quick\n  \
        oblivio-lab run stash-study --accesses 1000000000 --seeds 32\n  \
        oblivio-lab run stash-study --deep --output stash-20")]
pub(crate) struct StashStudyArgs {
    /// Accesses counted per setup, over all of its runs [default: 100,000,000; 20,000,000 with
    /// --quick; 1,000,000,000 with --deep].
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000_000)
    )]
    accesses: Option<u64>,
    /// Independent runs of each setup, each with a seed of its own [default: 16; 8 with --quick, 10
    /// with --deep].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    seeds: Option<u32>,
    /// The order of the addresses.
    #[arg(long, value_enum, default_value_t = WorkloadName::Scan)]
    workload: WorkloadName,
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// Two loads on small trees, and fewer accesses: takes about a minute, gives rough figures.
    #[arg(long)]
    quick: bool,
    /// Only the setups of this scheme.
    #[arg(long, value_enum)]
    scheme: Option<StashSchemeName>,
    /// The tree of Tiny ORAM, with leaves on level 20: some 20 minutes on one core.
    #[arg(long, conflicts_with = "quick")]
    deep: bool,
}

/// The schemes whose stash sizes Tiny ORAM states.
#[derive(Clone, Copy, ValueEnum)]
enum StashSchemeName {
    /// Path ORAM, Z = 4.
    Path,
    /// RAW ORAM, Z = 5, A = 5.
    Raw,
}

impl LabCommand for stash_study::StashStudyPlan {
    type Args = StashStudyArgs;
    const DIRECTORY: &'static str = "lab-results";

    fn from_args(args: &StashStudyArgs, _: &Path) -> Result<Self, ProgramError> {
        let mut plan = match (args.quick, args.deep) {
            (true, _) => Self::quick(),
            (_, true) => Self::deep(),
            _ => Self::full(),
        };
        if let Some(scheme) = args.scheme {
            let scheme = match scheme {
                StashSchemeName::Path => Scheme::PathZ4,
                StashSchemeName::Raw => Scheme::RawZ5A5,
            };
            plan.setups.retain(|setup| setup.scheme == scheme);
        }
        Ok(Self {
            accesses: args.accesses.unwrap_or(plan.accesses),
            runs: args.seeds.unwrap_or(plan.runs),
            workload: args.workload.into(),
            seed: args.measuring.seed,
            ..plan
        })
    }

    fn threads(args: &StashStudyArgs) -> Option<NonZeroUsize> {
        args.measuring.threads
    }
}

/// How much does RAW ORAM transfer and encrypt for each Z and A, and how large is its stash?
///
/// Counts the engine's requests to its store, compares them with the formulas of Tiny ORAM (Fig.
/// 6), and measures the tail of the stash. `oblivio-lab report` draws the figures.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run raw-traffic --quick\n  \
        oblivio-lab run raw-traffic --levels 18 --accesses 1000000000")]
pub(crate) struct RawTrafficArgs {
    /// The level of the leaves of the trees whose stash is measured [default: 14; 6 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(1..=20))]
    levels: Option<u8>,
    /// Accesses per pair of Z and A in the measurement of the stash, over all of its runs [default:
    /// 20,000,000; 2,000,000 with --quick].
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000_000)
    )]
    accesses: Option<u64>,
    /// Independent runs per pair of Z and A, each with a seed of its own [default: 10; 4 with
    /// --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    seeds: Option<u32>,
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// Small trees and fewer accesses: takes seconds, gives rough tails.
    #[arg(long)]
    quick: bool,
}

impl LabCommand for raw_traffic::RawTrafficPlan {
    type Args = RawTrafficArgs;
    const DIRECTORY: &'static str = "lab-results/raw-traffic";

    fn from_args(args: &RawTrafficArgs, _: &Path) -> Result<Self, ProgramError> {
        let plan = if args.quick { Self::quick() } else { Self::full() };
        Ok(Self {
            stash_leaf_level: args.levels.unwrap_or(plan.stash_leaf_level),
            stash_accesses: args.accesses.unwrap_or(plan.stash_accesses),
            runs: args.seeds.unwrap_or(plan.runs),
            seed: args.measuring.seed,
            ..plan
        })
    }

    fn threads(args: &RawTrafficArgs) -> Option<NonZeroUsize> {
        args.measuring.threads
    }
}

/// How many blocks stay on the client of an ORAM of ranges?
///
/// Simulates addresses without contents in the published rORAM, with one block per leaf and more,
/// and in trees as in `--scheme range`. Counts the blocks left after each batch of evictions, and
/// extrapolates the tail to 2^-80.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run range-stash --quick\n  \
        oblivio-lab run range-stash --blocks 100000000")]
pub(crate) struct RangeStashArgs {
    /// Blocks accessed in each setting, over all of its runs [default: 10,000,000; 500,000 with
    /// --quick].
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000_000)
    )]
    blocks: Option<u64>,
    /// Independent runs of each setting, each with a seed of its own [default: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    seeds: Option<u32>,
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// Fewer blocks: takes seconds, gives rough figures.
    #[arg(long)]
    quick: bool,
}

impl LabCommand for range_stash::RangeStashPlan {
    type Args = RangeStashArgs;
    const DIRECTORY: &'static str = "lab-results/range-stash";

    fn from_args(args: &RangeStashArgs, _: &Path) -> Result<Self, ProgramError> {
        let full = Self::full();
        let blocks = args.blocks.unwrap_or(if args.quick { 500_000 } else { full.blocks });
        let runs = args.seeds.unwrap_or(full.runs);
        Ok(Self { blocks, runs, seed: args.measuring.seed, ..full })
    }

    fn threads(args: &RangeStashArgs) -> Option<NonZeroUsize> {
        args.measuring.threads
    }
}

/// How full do the buckets of S³ORAM get?
///
/// Simulates blocks without contents in trees with unbounded buckets, for trees of A · 2^(H-1)
/// blocks and of twice that number. Counts the blocks in the fullest bucket of each eviction,
/// inside the tree and in its leaves. Compares the counts with the bound of Lemma 4.1.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run share-overflow --quick\n  \
        oblivio-lab run share-overflow --evictions 10000000")]
pub(crate) struct ShareOverflowArgs {
    /// Evictions of each tree [default: 1,000,000; 50,000 with --quick].
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000)
    )]
    evictions: Option<u64>,
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// Fewer evictions: takes seconds, gives rough figures.
    #[arg(long)]
    quick: bool,
}

impl LabCommand for share_overflow::ShareOverflowPlan {
    type Args = ShareOverflowArgs;
    const DIRECTORY: &'static str = "lab-results/share-overflow";

    fn from_args(args: &ShareOverflowArgs, _: &Path) -> Result<Self, ProgramError> {
        let full = Self::full();
        let evictions = args.evictions.unwrap_or(if args.quick { 50_000 } else { full.evictions });
        Ok(Self { evictions, seed: args.measuring.seed, ..full })
    }

    fn threads(args: &ShareOverflowArgs) -> Option<NonZeroUsize> {
        args.measuring.threads
    }
}
