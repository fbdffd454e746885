//! What can be typed after `oblivio-lab simulate`.

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
    /// A trace that needs no file.
    #[arg(long, value_name = "NAME", conflicts_with = "trace", value_parser = PossibleValuesParser::new(MADE))]
    pub(crate) made: Option<String>,
    /// The machine, as figures of the evaluation name it.
    #[arg(long, value_name = "NAME", default_value = "baseline", value_parser = PossibleValuesParser::new(VARIANTS.iter().map(|variant| &*variant.name)))]
    pub(crate) variant: String,
    /// The level of the leaves (L): the paper's is 24, and takes about 2 GB; each level less takes half.
    #[arg(long, value_name = "L", default_value_t = 20, value_parser = clap::value_parser!(u8).range(10..=25))]
    pub(crate) levels: u8,
    #[command(flatten)]
    pub(crate) switches: SwitchArgs,
    #[command(flatten)]
    pub(crate) requests: RequestArgs,
    /// A machine of your own, in TOML or JSON: all of it, as --print-spec writes it, but for what --write-marks,
    /// --pages and --fill-small-tree say.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["variant", "levels", "SwitchArgs"])]
    pub(crate) spec: Option<PathBuf>,
    /// Write the machine, for --spec, instead of running it: as TOML, or as JSON with --json.
    #[arg(long)]
    pub(crate) print_spec: bool,
    /// Records that count [default: what the warm-up leaves of the trace; 100,000 with --made]. A shorter
    /// trace is repeated.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    pub(crate) records: Option<u64>,
    /// Records before them, which fill the caches [default: a quarter of those that count].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=20_000_000))]
    pub(crate) warm_up: Option<u64>,
    /// Records before those, which fill the LLC, and the small tree of Rho with --fill-small-tree. They take no time.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=20_000_000))]
    pub(crate) fill_llc: u64,
    /// Where all coins come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
