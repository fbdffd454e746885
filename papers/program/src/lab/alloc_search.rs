//! `oblivio-lab run alloc-search`.

use std::num::NonZeroUsize;
use std::path::Path;

use clap::{Args, ValueEnum};
use oblivio_cli::WorkloadName;
use oblivio_cli::error::CliError;
use oblivio_lab::alloc_search::{Judge, SearchPlan, TimeJudge, full_plan, quick_plan};
use oblivio_sim::controller::Pace;

use super::{LabCommand, MeasuringArgs};
use crate::args::pace;
use crate::error::ProgramError;

/// The level of the leaves in the paper, and the default of a search by time.
const TIMED_LEAF_LEVEL: u8 = 24;

/// Measured records in a run of a search by time: by default, and with `--quick`.
const RECORDS: [u64; 2] = [20_000, 4000];

/// How small may the buckets of the middle levels be (IR-Alloc)?
///
/// Lowers the slots of levels step by step, runs the engine with each profile, and keeps the
/// profile that moves the fewest slots per access. The results file holds the profile. The scheme
/// is Path ORAM, as in the paper; for volumes use `oblivio plan --alloc`. With --judge time,
/// profiles are compared by the time that a simulated processor takes. Then each run is a line of
/// alloc-search.jsonl, and an interrupted search continues.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run alloc-search --quick\n  \
        oblivio-lab run alloc-search --levels 18 --workload zipf\n  \
        oblivio-lab run alloc-search --judge time --ir-stash --levels 22 --output search-22")]
pub(crate) struct AllocSearchArgs {
    /// The measure by which profiles are compared.
    #[arg(long, value_enum, default_value_t = JudgeName::Slots)]
    judge: JudgeName,
    /// The client keeps the tree top as IR-Stash does: a search for IR-Alloc with IR-Stash. Needs
    /// --judge time.
    #[arg(long)]
    ir_stash: bool,
    /// Channels of DRAM, with --judge time [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    channels: Option<u32>,
    /// When paths start, with --judge time: free, when-idle, gap or start-to-start, all but the
    /// first with a number of cycles [default: gap:250].
    #[arg(long, value_name = "PACE", value_parser = pace)]
    pace: Option<Pace>,
    /// The level of the leaves (L) [default: 15; 24 with --judge time; 13 with --quick]. With
    /// --judge time, a run takes about 2 GB at 24; each level less halves that.
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(1..=25))]
    levels: Option<u8>,
    /// Blocks per leaf; 4 use half of all slots.
    #[arg(long, value_name = "BLOCKS", default_value_t = 4.0)]
    load: f64,
    /// Levels from the root on that the client keeps [default: L - 14, as in the paper].
    #[arg(long, value_name = "LEVELS")]
    tree_top: Option<u8>,
    /// Stash bound: if the stash holds more blocks, background evictions precede the next access
    /// [default: 100].
    #[arg(long, value_name = "BLOCKS")]
    stash: Option<usize>,
    /// The order of the requested addresses.
    #[arg(long, value_enum, default_value_t = WorkloadName::Uniform)]
    workload: WorkloadName,
    /// The fraction of all slots that may be lost [default: 0.01].
    #[arg(long, value_name = "PART")]
    space_loss_max: Option<f64>,
    /// Background evictions per access that a profile may add to the uniform tree's [default:
    /// 0.15].
    #[arg(long, value_name = "EVICTIONS")]
    extra_evictions_max: Option<f64>,
    /// Accesses counted per profile, over all of its runs [default: 500,000; 100,000 with --quick].
    /// With --judge time, measured records of a trace [default: 20,000; 4,000 with --quick].
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000)
    )]
    accesses: Option<u64>,
    /// Independent runs of each profile, each with a seed of its own [default: 2; 1 with --judge
    /// time].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: Option<u32>,
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// A small tree and fewer accesses: takes seconds, gives rough figures.
    #[arg(long)]
    quick: bool,
}

/// The measure by which profiles are compared.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum JudgeName {
    /// The slots that an access of the engine moves, background evictions included.
    Slots,
    /// The time that a simulated processor takes for random requests, in an aged tree.
    Time,
}

impl LabCommand for SearchPlan {
    type Args = AllocSearchArgs;
    const DIRECTORY: &'static str = "lab-results";

    fn from_args(args: &AllocSearchArgs, _: &Path) -> Result<Self, ProgramError> {
        let by_time = args.judge == JudgeName::Time;
        if !by_time && (args.ir_stash || args.channels.is_some() || args.pace.is_some()) {
            return Err(CliError::Usage(
                "--ir-stash, --channels and --pace need a simulated processor: add --judge time"
                    .to_owned(),
            )
            .into());
        }
        let plan = if args.quick { quick_plan() } else { full_plan() };
        let default_level = if by_time && !args.quick { TIMED_LEAF_LEVEL } else { plan.leaf_level };
        let mut plan = plan.on_tree(args.levels.unwrap_or(default_level));
        if by_time {
            let judge = TimeJudge {
                ir_stash: args.ir_stash,
                channels: args.channels.unwrap_or(TimeJudge::PAPER.channels),
                pace: args.pace.unwrap_or(TimeJudge::PAPER.pace),
                ..TimeJudge::PAPER
            };
            plan = plan.by_time(Judge::Time(judge), RECORDS[usize::from(args.quick)]);
        }
        let plan = SearchPlan {
            tree_top_levels: args.tree_top.unwrap_or(plan.tree_top_levels),
            stash_blocks_max: args.stash.unwrap_or(plan.stash_blocks_max),
            workload: args.workload.into(),
            space_loss_max: args.space_loss_max.unwrap_or(plan.space_loss_max),
            extra_evictions_max: args.extra_evictions_max.unwrap_or(plan.extra_evictions_max),
            accesses: args.accesses.unwrap_or(plan.accesses),
            runs: args.seeds.unwrap_or(plan.runs),
            seed: args.measuring.seed,
            ..plan
        };
        Ok(plan.with_load(args.load))
    }

    fn threads(args: &AllocSearchArgs) -> Option<NonZeroUsize> {
        args.measuring.threads
    }
}
