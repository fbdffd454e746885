//! What can be typed about recorded views.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OpenArgs;
use super::values::parse_size;

#[derive(Subcommand)]
pub(crate) enum ViewCommand {
    /// Say what storage saw: how often, how much, which levels, which leaves, and when.
    ///
    /// It counts what was read and written of each level, says whether the leaves that accesses went to are uniform, as
    /// they are if nothing can be learnt from them, and how many trips there were a second. Of share servers it also says
    /// what they sent to each other, and whether each eviction looks like any other, if the views were recorded there.
    #[command(
        after_help = "Examples:\n  oblivio view show disk.view\n  oblivio view show disk.view --svg disk.svg\n  oblivio view show disk.view --json\nOf share servers, each of which was started with --record-views; what servers 1 and 3 see together:\n  oblivio view show one/alice-disk-server1-1.view three/alice-disk-server3-1.view\nWhat one of them sees of its client alone, from a view that was recorded at the client:\n  oblivio view show disk.view --parties 1"
    )]
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
    /// The view file; of share servers that were watched one by one, as many as are to be seen together.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Show what these share servers see together, by their numbers from 1 [default: all of which the files have something].
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) parties: Vec<u8>,
    /// Draw it as well. A file of this name is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// The tree that is drawn [default: of those that show leaves, the one that was read most].
    #[arg(long, value_name = "NUMBER", requires = "svg")]
    pub(crate) tree: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ViewRecordArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The view file. One that is there is replaced, and nothing else is.
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
    /// Of a view of share servers, only what these saw, by their numbers from 1.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) parties: Vec<u8>,
    /// Where the values go; `-` is standard output.
    #[arg(long, value_name = "OUT", default_value = "-")]
    pub(crate) csv: PathBuf,
}
