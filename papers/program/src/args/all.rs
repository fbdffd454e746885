//! What can be typed after `oblivio-lab run`, without the name of an experiment.

use std::path::PathBuf;

use clap::Args;

use super::RunsArgs;

#[derive(Args)]
pub(crate) struct AllArgs {
    /// Small trees, few records and paths, and an LLC of 32 KiB: some minutes, and rough figures. Without it
    /// the trees are the papers' and the traces long: a day or two.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Make these figures alone: fig10 fig03 dram roram links, say. `oblivio-lab list` names them.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub(crate) figure: Vec<String>,
    /// Where everything goes: a directory for each experiment, and the report. Made if missing. Runs that are
    /// recorded there are not made again.
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
}
