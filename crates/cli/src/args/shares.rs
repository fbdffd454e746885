//! Arguments of `oblivio shares`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use oblivio::Location;

use super::opening::{LocationParser, SecretArgs, UnlockArgs};
use super::values::parse_seconds;

pub(crate) const REPAIR_EXAMPLES: &str = "\
Example, for the second of three servers, which has lost its disk:
  oblivio shares repair 'shares://one.example,two.example,three.example/disk\
?server=KEY1,KEY2,KEY3&key=./client.key' --server 2";

#[derive(Subcommand)]
pub(crate) enum SharesCommand {
    /// Rebuild the shares of a server that lost them or was rolled back, from the other servers.
    ///
    /// The command first checks whether the server is behind the others, without disturbing a
    /// client that uses the volume. Only then it takes the volume over. A client that uses the
    /// volume without this server is fenced off, and no client can use the volume during the
    /// repair. A client that uses this server, too, keeps the volume, and nothing is done (exit
    /// code 9).
    ///
    /// What is left of the volume on the server is removed first. At least t + 1 other servers must
    /// be available, where t servers may collude; with more, a wrong share is detected. An
    /// interrupted repair is started again from the beginning.
    ///
    /// The repair needs no client's directory, which opens the volume afterwards as before. Without
    /// the latest directory, all other servers must be available, because a missing one may have
    /// newer records. If the directory is available and knows that the server has wrong shares, no
    /// --anyway is needed, and the server deals in evictions again afterwards. If the directory
    /// names newer records than the available servers hold, and another server is missing, nothing
    /// is done (exit code 15).
    #[command(after_help = REPAIR_EXAMPLES)]
    Repair(RepairArgs),
}

#[derive(Args)]
pub(crate) struct RepairArgs {
    /// The volume: shares://HOST:PORT,HOST:PORT,HOST:PORT/NAME?server=KEY,KEY,KEY&key=FILE, with
    /// all of its servers.
    #[arg(value_parser = LocationParser)]
    pub(crate) volume: Location,
    /// The client's directory, if it is available [default: one for each volume, in the user's
    /// state directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) unlock: UnlockArgs,
    /// Number of the server to repair: its position in the URL, from 1.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=7))]
    pub(crate) server: u8,
    /// Rebuild the server although it is up to date, because its shares were found to be wrong.
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Continue although other servers are missing and the latest copy of the client's directory is
    /// not available. The copied records may then be old: use this only if the missing servers are
    /// lost for good.
    #[arg(long)]
    pub(crate) without_missing: bool,
    /// Seconds to keep reconnecting to a server after its link was lost [default: 60], and to keep
    /// trying to open the volume if a server ends the link or has no free connection [default: 5].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) retry_for: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
