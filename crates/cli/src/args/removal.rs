//! Arguments of `oblivio remove`.

use clap::{Args, ValueHint};
use oblivio::Location;

use super::opening::LocationParser;

pub(crate) const REMOVE_EXAMPLES: &str = "\
Example:
  oblivio remove 'oblivio+tls://backup.example:2411/disk?server=KEY&key=client.key' --yes

A removed volume cannot be restored. The client's directory stays, and is useless without it.";

#[derive(Args)]
pub(crate) struct RemoveArgs {
    /// The volume: a location as for any command (see `oblivio check --help`).
    #[arg(value_parser = LocationParser, value_hint = ValueHint::FilePath)]
    pub(crate) volume: Location,
    /// Actually remove the volume. Without this flag, `remove` only checks whether it could.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
