//! Arguments of `oblivio-lab simulate`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use oblivio_lab::evaluation::{MADE, VARIANTS};

use super::{RequestArgs, SwitchArgs};

pub(crate) const SIMULATE_EXAMPLES: &str = "\
Examples:
  oblivio-lab simulate mcf.trace.gz
  oblivio-lab simulate mcf.trace.gz --variant ir-oram --levels 24 --pace gap
  oblivio-lab simulate --made uniform --variant none --json
  oblivio-lab simulate --variant baseline --print-spec > machine.toml
  oblivio-lab simulate mcf.trace.gz --spec machine.toml

A trace is in any format that `oblivio-lab trace` reads. Its pages are moved to random pages of the
protected space, unless --pages says otherwise.";

#[derive(Args)]
pub(crate) struct SimulateArgs {
    /// The trace.
    #[arg(value_name = "TRACE", required_unless_present_any = ["made", "print_spec"])]
    pub(crate) trace: Option<PathBuf>,
    /// A generated trace, which needs no file.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "trace",
        value_parser = PossibleValuesParser::new(MADE)
    )]
    pub(crate) made: Option<String>,
    /// The machine, by its name in the figures of the evaluation.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "baseline",
        value_parser = PossibleValuesParser::new(VARIANTS.iter().map(|variant| &*variant.name))
    )]
    pub(crate) variant: String,
    /// The level of the leaves (L). The paper's 24 takes about 2 GB; each level less halves that.
    #[arg(
        long,
        value_name = "L",
        default_value_t = 20,
        value_parser = clap::value_parser!(u8).range(10..=25)
    )]
    pub(crate) levels: u8,
    #[command(flatten)]
    pub(crate) switches: SwitchArgs,
    #[command(flatten)]
    pub(crate) requests: RequestArgs,
    /// Your own machine, in TOML or JSON: a complete description, as --print-spec writes it. Only
    /// --write-marks, --pages and --fill-small-tree still apply.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["variant", "levels", "SwitchArgs"])]
    pub(crate) spec: Option<PathBuf>,
    /// Print the machine, for --spec, instead of running it: as TOML, or as JSON with --json.
    #[arg(long)]
    pub(crate) print_spec: bool,
    /// Records to measure [default: the trace without the warm-up; 100,000 with --made]. A shorter
    /// trace is repeated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    pub(crate) records: Option<u64>,
    /// Records of the warm-up, which fill the caches [default: a quarter of the measured records].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=20_000_000))]
    pub(crate) warm_up: Option<u64>,
    /// Records to run before the warm-up, without timing. They fill the LLC and, with
    /// --fill-small-tree, the small tree of Rho.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=20_000_000)
    )]
    pub(crate) fill_llc: u64,
    /// The seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
