//! What can be typed to copy a volume.

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

A copy that is not whole is no volume, and every command refuses it. How far it has come is kept in a
file beside it, which is removed at the end. Compare what opens before you remove the old place:
  oblivio check /mnt/disk.obl";

#[derive(Args)]
pub(crate) struct CopyArgs {
    /// Where the volume is: written as for any command (see `oblivio check --help`).
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) from: Location,
    /// Where the copy will be. There must be nothing yet. It may be of another kind.
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) to: Location,
    /// Go on with a copy that was interrupted. A copy that is whole is read back and compared
    /// again.
    #[arg(long)]
    pub(crate) resume: bool,
    /// The file that says how far the copy has come [default: the first file of the copy, with .copying
    /// behind its name].
    #[arg(long, value_name = "FILE")]
    pub(crate) progress: Option<PathBuf>,
    /// After so many bytes, what was copied is made durable, and how far it has come is kept.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "256M")]
    pub(crate) keep_every: u64,
    /// Do not read back what was copied, and do not compare it with the volume.
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
