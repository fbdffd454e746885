//! Arguments of `oblivio view`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OpenArgs;
use super::values::parse_size;

#[derive(Subcommand)]
pub(crate) enum ViewCommand {
    /// Show what storage saw: how often, how much, which levels, which leaves, and when.
    ///
    /// Counts what was read and written on each level, tests whether the accessed leaves are
    /// uniform (they are if nothing can be learnt from them), and shows how many trips there were
    /// per second. For share servers, it also counts the messages between them, and tests whether
    /// all evictions look alike, if the views were recorded on the servers.
    #[command(after_help = "Examples:
  oblivio view show disk.view
  oblivio view show disk.view --svg disk.svg
  oblivio view show disk.view --json
What share servers 1 and 3 see together, if each was started with --record-views:
  oblivio view show one/alice-disk-server1-1.view three/alice-disk-server3-1.view
What share server 1 alone sees of its client, from a view that the client recorded:
  oblivio view show disk.view --parties 1")]
    Show(ViewShowArgs),
    /// Record what storage sees while a command uses the volume as a network block device.
    #[command(after_help = "Example:
  oblivio view record disk.obl --output disk.view --run 'nbdcopy photo.jpg \"$uri\"'")]
    Record(ViewRecordArgs),
    /// Convert a view file to comma-separated values, one event per line.
    #[command(after_help = "Examples:
  oblivio view export oblivio-demo/demo.view --csv view.csv
  oblivio view export oblivio-demo/demo.view | head")]
    Export(ExportArgs),
}

#[derive(Args)]
pub(crate) struct ViewShowArgs {
    /// The view file. If share servers recorded their views themselves: one file for each server to
    /// show.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Numbers of the share servers, counted from 1, whose combined view is shown [default: all
    /// servers whose views are in the files].
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) parties: Vec<u8>,
    /// Also draw the view to this file. An existing picture is replaced; any other file is refused.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// The tree to draw [default: among the trees that show leaves, the one read most].
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
    /// The view file. An existing view file is replaced; any other file is refused.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// A shell command, run with `$uri` and `$unixsocket` set.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) run: String,
    /// The socket file [default: `nbd.sock` in the client's directory].
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Bytes of the write-back cache. Storage does not see requests that the cache answers.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "16M")]
    pub(crate) cache: u64,
}

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The view file.
    pub(crate) file: PathBuf,
    /// For a view of share servers: export only what these servers saw, by their numbers from 1.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) parties: Vec<u8>,
    /// The output file; `-` is standard output.
    #[arg(long, value_name = "OUT", default_value = "-")]
    pub(crate) csv: PathBuf,
}
