//! What can be typed to make a volume, and to look at one.

use std::path::PathBuf;

use clap::Args;

use super::values::{parse_bytes_per_second, parse_size};
use super::{OpenArgs, VolumeArgs, WishArgs};

#[derive(Args)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub(crate) at: VolumeArgs,
    /// Bytes of the disk, such as 64M, 1G, 1T. Of an image that is put into it, as many as that has, unless
    /// more are said.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, required_unless_present = "from")]
    pub(crate) size: Option<u64>,
    /// Put the image of a disk into the volume: a file or a device, which is not changed. Blocks of zeros
    /// are left out. Share servers do not see which those are; other storage does.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    /// A name for the key slot.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) label: String,
    /// How long a passphrase shall take to try on this machine, in milliseconds. Never more than it takes
    /// to fill 1 GiB eight times.
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
    /// Show only what anyone can read, without a key. Nothing vouches for it.
    #[arg(long)]
    pub(crate) public: bool,
    /// End with exit code 14 when the volume was not closed and needs recovery. The client's directory alone
    /// is asked: whether storage is ahead of it, or older, only an opening tells.
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
    /// Check a volume whose storage was found to be changed, and holds again what it held.
    #[arg(long)]
    pub(crate) after_tampering: bool,
    /// Read no more than so many bytes a second, on average, such as 20M/s: others need the disk, too. Not for share
    /// servers.
    #[arg(long, value_name = "BYTES/s", value_parser = parse_bytes_per_second)]
    pub(crate) rate_max: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) const RESCUE_EXAMPLES: &str = "\
Examples:
  oblivio rescue disk.obl ./disk.img
  mount -o ro,loop ./disk.img /mnt      (a file system; ext4 that was not unmounted: ro,noload,loop)
  nbdkit --readonly file ./disk.img     (any disk, for NBD clients)

Reading the image shows storage nothing. `oblivio serve nbd --rescued` makes no image, and serves
the same to be read.

A store that was cut off is taken as well. What says which blocks are in a bucket, and vouches
for them, is kept behind all buckets: in the last 40th of a store with blocks of 4 KiB. If a cut
takes all of that, what is left are the blocks that the client holds.";

#[derive(Args)]
pub(crate) struct RescueArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The file to make: the disk, byte for byte, with zeros for what is lost. It must not exist.
    pub(crate) output: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
