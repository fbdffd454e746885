//! Arguments of `oblivio copy`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use oblivio::Location;

use super::opening::LocationParser;
use super::values::parse_size;

pub(crate) const COPY_EXAMPLES: &str = "\
Examples:
  oblivio copy disk.obl /mnt/disk.obl
  oblivio copy disk.obl stripe:/mnt/a/disk.obl,/mnt/b/disk.obl
  oblivio copy --resume disk.obl /mnt/disk.obl      (after Ctrl-C, a crash, a full disk)

An incomplete copy is not a volume, and every command refuses it. The progress of the copy is kept
in a file beside it, which is removed at the end. Check the copy before you remove the original:
  oblivio check /mnt/disk.obl";

#[derive(Args)]
pub(crate) struct CopyArgs {
    /// The volume to copy: a location as for any command (see `oblivio check --help`).
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) from: Location,
    /// Location of the copy. It must not exist yet, and may be of another kind.
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) to: Location,
    /// Resume a copy that was interrupted. A complete copy is read back and compared again.
    #[arg(long)]
    pub(crate) resume: bool,
    /// The file that records the progress of the copy [default: the first file of the copy, with
    /// .copying appended to its name].
    #[arg(long, value_name = "FILE")]
    pub(crate) progress: Option<PathBuf>,
    /// Bytes to copy before the copied data is made durable and the progress is recorded.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "256M")]
    pub(crate) keep_every: u64,
    /// Do not read the copy back, and do not compare it with the volume.
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
