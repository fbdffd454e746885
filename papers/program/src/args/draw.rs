//! Arguments of `oblivio-lab draw`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct DrawArgs {
    /// The results file.
    pub(crate) results: PathBuf,
    /// Directory for the plot. Created if missing.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
}
