//! What experiments of many runs have in common.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct RunsArgs {
    /// The traces of programs, named as `oblivio-lab trace record-set` does: gcc.trace.gz; or as Ramulator 1.0 has
    /// them: 403.gcc.gz. It may be given more than once. Without it, the short samples.
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Vec<PathBuf>,
    /// Where the seeds of all runs come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Runs at a time [default: one for each processor]. They change time and memory, not the results.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Print the figures as JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number of runs.
fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    let number: usize = text.parse().map_err(|error: std::num::ParseIntError| error.to_string())?;
    NonZeroUsize::new(number).ok_or_else(|| "0 is not in 1..".to_owned())
}
