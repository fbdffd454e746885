//! What can be typed to remove a volume.

use clap::{Args, ValueHint};
use oblivio::Location;

use super::opening::LocationParser;

pub(crate) const REMOVE_EXAMPLES: &str = "\
Example:
  oblivio remove 'oblivio+tls://backup.example:2411/disk?server=KEY&key=client.key' --yes

What is gone cannot be brought back. The client's directory stays, and is of no use without the volume.";

#[derive(Args)]
pub(crate) struct RemoveArgs {
    /// Where the volume is: written as for any command (see `oblivio check --help`).
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) volume: Location,
    /// Do it. Without this, it is only looked whether it could be done.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
