//! `oblivio-lab run evaluation`.

use std::path::PathBuf;

use clap::Args;

use super::{RequestArgs, RunsArgs, SwitchArgs};

#[derive(Args)]
pub(crate) struct EvaluationArgs {
    /// Make these figures alone: fig10, say. `oblivio-lab list` names them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) figure: Vec<String>,
    /// Make the figures of these files instead of the built-in ones: TOML, as docs/add-a-figure.md shows.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) manifest: Vec<PathBuf>,
    /// A small tree, few records, and an LLC of 32 KiB: some minutes, and rough figures.
    #[arg(long)]
    pub(crate) quick: bool,
    /// The level of the leaves (L). A run takes about 2 GB at 24, all of them together 1.4 GB more, and half for
    /// each level less; fig16 goes one level further [default: 24, the paper's; 16 with --quick].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(10..=25))]
    pub(crate) levels: Option<u8>,
    /// Records of each trace that count [default: 1,000,000; 6,000 with --quick]. A shorter trace is
    /// repeated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=20_000_000))]
    pub(crate) records: Option<u64>,
    /// Records before them, which fill the caches [default: a quarter of --records].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=20_000_000))]
    pub(crate) warm_up: Option<u64>,
    /// Records before those, which fill the LLC, and the small tree of Rho with --fill-small-tree. They take no time
    /// [default: 2,000,000, a whole turn of a recorded trace; 0 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=20_000_000))]
    pub(crate) fill_llc: Option<u64>,
    #[command(flatten)]
    pub(crate) switches: SwitchArgs,
    #[command(flatten)]
    pub(crate) requests: RequestArgs,
    /// Make no run: only the figures of those that are recorded in --output, which need no traces.
    #[arg(long, conflicts_with_all = ["traces", "trees", "jobs"])]
    pub(crate) recorded: bool,
    /// Hold each command of DRAM against its rules, anew and apart from what sends them; an illegal one ends the evaluation.
    /// Results are the same, and records say how many commands were checked; runs take several times as long.
    #[arg(long)]
    pub(crate) check_commands: bool,
    /// Where the records of runs and the figures go. Made if missing. Runs that are recorded there are not
    /// made again.
    #[arg(long, value_name = "DIR", default_value = "lab-results/evaluation")]
    pub(crate) output: PathBuf,
    /// Keep initial trees here, and begin runs with them: about 1.4 GB each at level 24, and half for each level less. Each
    /// ORAM has its own, whatever runs on it. Made if missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) trees: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
}
