//! What can be typed about recorded views.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OpenArgs;
use super::values::parse_size;

#[derive(Subcommand)]
pub(crate) enum ViewCommand {
    /// Say what storage saw: how often, how much, which levels.
    Show(ViewShowArgs),
    /// Record what storage sees while a command uses the volume as a network block device.
    #[command(
        after_help = "Example:\n  oblivio view record disk.obl --output disk.view --run 'nbdcopy photo.jpg \"$uri\"'"
    )]
    Record(ViewRecordArgs),
    /// Turn a view file into comma-separated values, one event a line.
    #[command(
        after_help = "Examples:\n  oblivio view export oblivio-demo/demo.view --csv view.csv\n  oblivio view export oblivio-demo/demo.view | head"
    )]
    Export(ExportArgs),
}

#[derive(Args)]
pub(crate) struct ViewShowArgs {
    /// The view file.
    pub(crate) file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ViewRecordArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The view file. Replaced if there is one.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// A shell command, run with `$uri` and `$unixsocket` set.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) run: String,
    /// The socket file [default: `nbd.sock` in the client's directory].
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Bytes of the write-back cache. What it answers, storage does not see.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "16M")]
    pub(crate) cache: u64,
}

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The view file.
    pub(crate) file: PathBuf,
    /// Where the values go; `-` is standard output.
    #[arg(long, value_name = "OUT", default_value = "-")]
    pub(crate) csv: PathBuf,
}
