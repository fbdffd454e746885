//! What can be said of the experiments that count what the engine does.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use oblivio_cli::WorkloadName;
use oblivio_lab::links::PAPER_DISK_BYTES;
use oblivio_lab::stash_study::Scheme;
use oblivio_sim::controller::Pace;
use oblivio_wire::size::parse_size;

use super::switches::pace;

/// What experiments that measure on many threads have in common.
#[derive(Args)]
pub(crate) struct MeasuringArgs {
    /// Where the seeds of all runs come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads [default: one for each processor]. They change the time, not the results.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

#[derive(Args)]
pub(crate) struct StashStudyArgs {
    /// Accesses counted for each setup, over all of its runs [default: 100,000,000; 20,000,000 with
    /// --quick; 1,000,000,000 with --deep].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000_000))]
    pub(crate) accesses: Option<u64>,
    /// Independent runs of each setup, each with a seed of its own [default: 16; 8 with --quick, 10 with
    /// --deep].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) seeds: Option<u32>,
    /// Which addresses are asked for.
    #[arg(long, value_enum, default_value_t = WorkloadName::Scan)]
    pub(crate) workload: WorkloadName,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// Two loads on small trees, and fewer accesses: about a minute, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The setups of this scheme alone.
    #[arg(long, value_enum)]
    pub(crate) scheme: Option<StashSchemeName>,
    /// The tree of Tiny ORAM, with leaves on level 20: some 20 minutes on one core.
    #[arg(long, conflicts_with = "quick")]
    pub(crate) deep: bool,
    /// Where runs, results and plot go. Made if missing; runs that are recorded there are not made again,
    /// and results of an earlier study are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The schemes whose stash Tiny ORAM states.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum StashSchemeName {
    /// Path ORAM, Z = 4.
    Path,
    /// RAW ORAM, Z = 5, A = 5.
    Raw,
}

impl From<StashSchemeName> for Scheme {
    fn from(name: StashSchemeName) -> Self {
        match name {
            StashSchemeName::Path => Self::PathZ4,
            StashSchemeName::Raw => Self::RawZ5A5,
        }
    }
}

#[derive(Args)]
pub(crate) struct RawTrafficArgs {
    /// The level of the leaves of the tree whose stash is measured [default: 14; 6 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(1..=20))]
    pub(crate) levels: Option<u8>,
    /// Accesses for each Z and A whose stash is measured, over all of its runs [default: 20,000,000;
    /// 2,000,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000_000))]
    pub(crate) accesses: Option<u64>,
    /// Independent runs for each Z and A, each with a seed of its own [default: 10; 4 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// Small trees and fewer accesses: some seconds, and rough tails.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the results and the figures go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/raw-traffic")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct AllocSearchArgs {
    /// What makes a profile better.
    #[arg(long, value_enum, default_value_t = JudgeName::Slots)]
    pub(crate) judge: JudgeName,
    /// The client keeps the tree top as IR-Stash does: the search for IR-Alloc with IR-Stash. With --judge time.
    #[arg(long)]
    pub(crate) ir_stash: bool,
    /// Channels of DRAM, with --judge time [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) channels: Option<u32>,
    /// When paths start, with --judge time: free, when-idle, gap or start-to-start, all but the first with a number of cycles
    /// [default: gap:250].
    #[arg(long, value_name = "PACE", value_parser = pace)]
    pub(crate) pace: Option<Pace>,
    /// The level of the leaves (L) [default: 15; 24 with --judge time; 13 with --quick]. By time, a run takes about 2 GB at 24, and
    /// half for each level less.
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(1..=25))]
    pub(crate) levels: Option<u8>,
    /// Blocks for each leaf; 4 use half of all slots.
    #[arg(long, value_name = "BLOCKS", default_value_t = 4.0)]
    pub(crate) load: f64,
    /// Levels from the root on that the client keeps [default: L - 14, as in the paper].
    #[arg(long, value_name = "LEVELS")]
    pub(crate) tree_top: Option<u8>,
    /// Past so many blocks in the stash, background evictions come before the next access
    /// [default: 100].
    #[arg(long, value_name = "BLOCKS")]
    pub(crate) stash: Option<usize>,
    /// Which addresses are asked for.
    #[arg(long, value_enum, default_value_t = WorkloadName::Uniform)]
    pub(crate) workload: WorkloadName,
    /// The part of all slots that may be lost [default: 0.01].
    #[arg(long, value_name = "PART")]
    pub(crate) space_loss_max: Option<f64>,
    /// What background evictions may add beyond those of the uniform tree, as a part of the accesses
    /// [default: 0.15].
    #[arg(long, value_name = "EVICTIONS")]
    pub(crate) extra_evictions_max: Option<f64>,
    /// Accesses counted for each profile, over all of its runs [default: 500,000; 100,000 with
    /// --quick]. By time, records of a trace that count [default: 20,000; 4,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000))]
    pub(crate) accesses: Option<u64>,
    /// Independent runs of each profile, each with a seed of its own [default: 2; 1 with --judge time].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// A small tree and fewer accesses: some seconds, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where results and plot go. Made if missing; files of an earlier run are replaced, but for runs that took time: they are not
    /// made again.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What makes a profile better.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JudgeName {
    /// An access of the engine moves fewer slots, background evictions included.
    Slots,
    /// A simulated processor takes less time for random requests, in a tree in use.
    Time,
}

#[derive(Args)]
pub(crate) struct TechniquesArgs {
    /// The level of the leaves (L), from 8 to 20 [default: 16; 10 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(8..=20))]
    pub(crate) levels: Option<u8>,
    /// Requests counted for each technique and workload [default: 100,000; 3,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub(crate) requests: Option<u64>,
    /// A recorded trace, as one more workload.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) trace: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// A small tree and few requests: some seconds, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the results go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DramArgs {
    /// Where all coins come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where the results and the figures go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/dram")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RangeMediaArgs {
    /// Blocks of 4 KiB [default: 262,144; 16,384 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1 << 20))]
    pub(crate) blocks: Option<u64>,
    /// Where all coins come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Fewer blocks: seconds.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the results go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/range-media")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShareOverflowArgs {
    /// Evictions of each tree [default: 1,000,000; 50,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000))]
    pub(crate) evictions: Option<u64>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// Fewer evictions: seconds, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the results go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/share-overflow")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct S3oramArgs {
    /// The model alone, at rough rates of this machine: seconds.
    #[arg(long)]
    pub(crate) quick: bool,
    /// With --quick: real servers all the same. Without it they are always there.
    #[arg(long)]
    pub(crate) measure: bool,
    /// In the place of the small trees one of 1.4 GiB in blocks of 128 KiB, and beside it, behind the same link, Path ORAM and a default volume of as many blocks on a bucket server:
    /// half an hour, and 30 GB of the folder.
    #[arg(long, conflicts_with_all = ["quick", "measure"])]
    pub(crate) large: bool,
    /// Where the servers keep their files while they run [default: that of the system for temporary files].
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Where the results go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/s3oram")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RangeStashArgs {
    /// Blocks accessed in each setting, over all of its runs [default: 10,000,000; 500,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1_000_000_000_000_000))]
    pub(crate) blocks: Option<u64>,
    /// Independent runs of each setting, each with a seed of its own [default: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) measuring: MeasuringArgs,
    /// Fewer blocks: seconds, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the results go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/range-stash")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RoramArgs {
    /// There are two to this number of blocks [default: 22, as in the paper; 14 with --quick].
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(2..=30))]
    pub(crate) level: Option<u8>,
    /// The longest ranges have two to this number of blocks [default: 14, as in the paper; 10 with --quick].
    #[arg(long, value_name = "ELL", value_parser = clap::value_parser!(u8).range(0..=20))]
    pub(crate) ell: Option<u8>,
    /// Where all coins come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Fewer blocks: a second, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where the results and the figures go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/roram")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct LinksArgs {
    /// Bytes of the disk [default: 40G, as in the paper].
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value_t = PAPER_DISK_BYTES, hide_default_value = true)]
    pub(crate) size: u64,
    /// Where the results and the figures go. Made if missing; those of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "lab-results/links")]
    pub(crate) output: PathBuf,
    /// Print the results file instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}
