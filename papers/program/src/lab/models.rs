//! Experiments on models of DRAM, media and links: `oblivio-lab run dram`, `range-media`, `roram`
//! and `links`.

use std::path::Path;

use clap::Args;
use oblivio_cli::error::CliError;
use oblivio_lab::links::PAPER_DISK_BYTES;
use oblivio_lab::roram::{PAPER_ELL, PAPER_LEVEL};
use oblivio_lab::{dram, links, range_media, roram};
use oblivio_wire::size::parse_size;

use super::LabCommand;
use crate::error::ProgramError;

/// Is the simulated DRAM as fast as in published simulators?
///
/// Measures the bandwidth of DDR3-1600 under five loads and the latency of an isolated read, on 1
/// and 4 channels, and compares them with USIMM, `DRAMsim3` and Ramulator 1. `oblivio-lab report`
/// draws the figures.
#[derive(Args)]
#[command(after_help = "Example:\n  \
        oblivio-lab run dram && oblivio-lab report lab-results/dram/figures.json")]
pub(crate) struct DramArgs {
    /// The seed of all requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl LabCommand for dram::DramPlan {
    type Args = DramArgs;
    const DIRECTORY: &'static str = "lab-results/dram";

    fn from_args(args: &DramArgs, _: &Path) -> Result<Self, ProgramError> {
        Ok(Self { seed: args.seed })
    }
}

/// Is the model of volumes on a medium right?
///
/// Reads blocks and whole ranges from arrays with data, whose store counts its requests, and
/// compares them with the model of `plan --medium`. The arrays lie in memory: 2^18 blocks take some
/// gigabytes.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run range-media --quick\n  \
        oblivio-lab run range-media --blocks 65536")]
pub(crate) struct RangeMediaArgs {
    /// Blocks of 4 KiB [default: 262,144; 16,384 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=1 << 20))]
    blocks: Option<u64>,
    /// The seed of all requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Fewer blocks: takes seconds.
    #[arg(long)]
    quick: bool,
}

impl LabCommand for range_media::RangeMediaPlan {
    type Args = RangeMediaArgs;
    const DIRECTORY: &'static str = "lab-results/range-media";

    fn from_args(args: &RangeMediaArgs, _: &Path) -> Result<Self, ProgramError> {
        let blocks = args.blocks.unwrap_or(if args.quick { 1 << 14 } else { 1 << 18 });
        Ok(Self { blocks, read_bytes: 16 << 20, seed: args.seed })
    }
}

/// What do ranges gain on a disk, an SSD and a link? Figs. 6 and 7 of rORAM, on models of them.
///
/// Counts the requests of Path ORAM, rORAM and this project's volumes for ranges of each length and
/// for recorded requests of an ext4 file system, and the time they take on a model of each medium.
/// Also counts seeks, with storage in one part and in several. Nothing is stored. `oblivio-lab
/// report` draws the figures.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run roram && oblivio-lab report lab-results/roram/figures.json\n  \
        oblivio-lab run roram --level 18 --ell 10")]
pub(crate) struct RoramArgs {
    /// Base-2 logarithm of the number of blocks [default: 22, as in the paper; 14 with --quick].
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(2..=30))]
    level: Option<u8>,
    /// Base-2 logarithm of the blocks in the longest ranges [default: 14, as in the paper; 10 with
    /// --quick].
    #[arg(long, value_name = "ELL", value_parser = clap::value_parser!(u8).range(0..=20))]
    ell: Option<u8>,
    /// The seed of all requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Fewer blocks: takes a second, gives rough figures.
    #[arg(long)]
    quick: bool,
}

impl LabCommand for roram::RoramPlan {
    type Args = RoramArgs;
    const DIRECTORY: &'static str = "lab-results/roram";

    fn from_args(args: &RoramArgs, _: &Path) -> Result<Self, ProgramError> {
        let default = roram_plan(args.quick, args.seed);
        let level = args.level.unwrap_or(default.level);
        let ell = args.ell.unwrap_or(default.ell.min(level));
        if ell > level {
            return Err(CliError::Input(format!(
                "ranges of 2^{ell} blocks exceed the array of 2^{level}: choose a smaller --ell"
            ))
            .into());
        }
        Ok(Self { level, ell, ..default })
    }
}

/// The paper's parameters, or smaller parameters for a quick run.
pub(super) fn roram_plan(quick: bool, seed: u64) -> roram::RoramPlan {
    match quick {
        true => roram::RoramPlan { level: 14, ell: 10, mix_requests_max: 50, seed },
        false => roram::RoramPlan {
            level: PAPER_LEVEL,
            ell: PAPER_ELL,
            mix_requests_max: usize::MAX,
            seed,
        },
    }
}

/// How fast are ORAMs over home, mobile and server links? And why does S³ORAM state 20.3 s for Path
/// ORAM?
///
/// Computes how much Path ORAM, RAW ORAM and this project's volumes transfer for blocks of 4 to 512
/// KiB, and how long that takes on each link, by the model of `plan --link`. Nothing is stored or
/// sent. `oblivio-lab report` draws the figures.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
        oblivio-lab run links && oblivio-lab report lab-results/links/figures.json\n  \
        oblivio-lab run links --size 1T")]
pub(crate) struct LinksArgs {
    /// Bytes of the disk [default: 40G, as in the paper].
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_size,
        default_value_t = PAPER_DISK_BYTES,
        hide_default_value = true
    )]
    size: u64,
}

impl LabCommand for links::LinksPlan {
    type Args = LinksArgs;
    const DIRECTORY: &'static str = "lab-results/links";

    fn from_args(args: &LinksArgs, _: &Path) -> Result<Self, ProgramError> {
        Ok(Self { disk_bytes: args.size })
    }
}
