//! What can be typed after `oblivio demo`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) const DEMO_EXAMPLES: &str = "\
Examples:
  oblivio demo
  oblivio demo --folder ~/photos
  oblivio demo --store server
  oblivio demo --store shares --servers 5
  oblivio demo --without-mount --output /tmp/demo --json

It needs mke2fs, e2fsck and debugfs (Debian: e2fsprogs) and nbdcopy (libnbd-bin). As root, where there
are FUSE and loop devices, it also mounts.";

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// The folder whose files are kept; this program and its manual if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Where everything goes. Made if missing; what an earlier demonstration left is replaced.
    #[arg(long, value_name = "DIR", default_value = "oblivio-demo")]
    pub(crate) output: PathBuf,
    /// What keeps the volume: a file; a bucket server in a process of its own, which is killed in between; or share servers,
    /// one of which is killed.
    #[arg(long, value_enum, default_value_t = DemoStore::File)]
    pub(crate) store: DemoStore,
    /// With `--store shares`: how many there are. Three wait for the one that is killed; five go on without it.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=7))]
    pub(crate) servers: u8,
    /// Mount nothing, even where it would be possible.
    #[arg(long)]
    pub(crate) without_mount: bool,
    /// Print the figures as JSON instead of the story and pictures.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What keeps the volume of the demonstration.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoStore {
    /// A file.
    File,
    /// A bucket server.
    Server,
    /// Share servers.
    Shares,
}
