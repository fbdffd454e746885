//! `oblivio-lab run blocks`.

use std::path::PathBuf;

use clap::Args;

use super::{InitialName, RunsArgs};

#[derive(Args)]
pub(crate) struct BlocksArgs {
    /// Make these figures alone: fig03, say. `oblivio-lab list` names them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) figure: Vec<String>,
    /// A small tree, few paths, and an LLC of 32 KiB: some seconds, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The level of the leaves (L). A run takes about 2 GB at 24, and half for each level less
    /// [default: 24, the paper's; 16 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(10..=25))]
    pub(crate) levels: Option<u8>,
    /// Paths of fig03, of which programs make 37 in 40 and chance the rest; each run of fig04 has a quarter.
    /// The paper has 4,000,000,000 [default: 400,000,000; 100,000 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000_000))]
    pub(crate) paths: Option<u64>,
    /// What trees hold at first.
    #[arg(long, value_enum, default_value_t = InitialName::EachOnce)]
    pub(crate) initial: InitialName,
    /// The size of the LLC that programs run behind [default: 2048; 32 with --quick].
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u64).range(1..=65536))]
    pub(crate) llc_kib: Option<u64>,
    /// Where the records of runs and the figures go. Made if missing. Runs that are recorded there are not
    /// made again.
    #[arg(long, value_name = "DIR", default_value = "lab-results/blocks")]
    pub(crate) output: PathBuf,
    /// Keep initial trees and runs under way here, and go on from them: about 1.4 GB each at level 24, and
    /// half for each level less. Made if missing. A run is kept after each program, until it is recorded;
    /// initial trees stay.
    #[arg(long, value_name = "DIR")]
    pub(crate) trees: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
}
