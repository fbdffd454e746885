//! Arguments of `oblivio create`, `info`, `check` and `rescue`.

use std::path::PathBuf;

use clap::Args;

use super::values::{parse_bytes_per_second, parse_size};
use super::{OpenArgs, VolumeArgs, VolumeRequirementsArgs};

#[derive(Args)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub(crate) at: VolumeArgs,
    /// Bytes of the disk, such as 64M, 1G, 1T [default: with `--from`, the size of the image].
    #[arg(long, value_name = "BYTES", value_parser = parse_size, required_unless_present = "from")]
    pub(crate) size: Option<u64>,
    /// Copy a disk image into the volume: a file or a device, which is not changed. Blocks of zeros
    /// are left out. Share servers do not see which blocks are left out; other storage does.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) requirements: VolumeRequirementsArgs,
    /// A name for the key slot.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) label: String,
    /// Milliseconds that one passphrase attempt takes on this machine: more make guessing slower.
    /// An attempt fills 1 GiB of memory at most eight times, however much is given here.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub(crate) unlock_millis: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// Show only what anyone can read, without a key. This information is not authenticated.
    #[arg(long)]
    pub(crate) public: bool,
    /// End with exit code 14 if the volume was not closed and needs recovery, as the client's
    /// directory records. Only opening the volume checks fully whether storage is older or newer
    /// than the directory.
    #[arg(long, conflicts_with = "public")]
    pub(crate) require_clean: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// Check a volume in which tampering was found, after its storage was restored.
    #[arg(long)]
    pub(crate) after_tampering: bool,
    /// Read at most this many bytes per second, on average, such as 20M/s, if others need the disk,
    /// too. Not for share servers.
    #[arg(long, value_name = "BYTES/s", value_parser = parse_bytes_per_second)]
    pub(crate) rate_max: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) const RESCUE_EXAMPLES: &str = "\
Examples:
  oblivio rescue disk.obl ./disk.img
  mount -o ro,loop ./disk.img /mnt      (a file system; for ext4, ro,noload,loop)
  nbdkit --readonly file ./disk.img     (any disk, for NBD clients)

Reading the image shows storage nothing. `oblivio serve nbd --rescued` serves the same contents
read-only, without an image.

A store that was cut off is accepted, too. The data that lists and authenticates the blocks of
each bucket is stored behind all buckets: in the last 40th of a store with blocks of 4 KiB. If all
of that data is cut off, only the blocks that the client holds are left.";

#[derive(Args)]
pub(crate) struct RescueArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The image file to make: the disk, byte for byte, with zeros for lost blocks. It must not
    /// exist.
    pub(crate) output: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
