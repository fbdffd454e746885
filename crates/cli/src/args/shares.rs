//! What can be typed about volumes on share servers.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use oblivio::Location;

use super::opening::{LocationParser, SecretArgs, UnlockArgs};
use super::values::parse_seconds;

pub(crate) const REPAIR_EXAMPLES: &str = "\
Example, of three servers the second of which has lost its disk:
  oblivio shares repair 'shares://one.example,two.example,three.example/disk?server=KEY1,KEY2,KEY3&key=./client.key' --server 2";

#[derive(Subcommand)]
pub(crate) enum SharesCommand {
    /// Make the shares of a server anew from those of the others: it has lost them, or was set back.
    ///
    /// It is looked first, beside whoever has the volume open, whether the server is not where the others are. Only then is the volume taken over: whoever has it
    /// open without that server is fenced off, and nobody may use it meanwhile. Whoever has it open on that server, too, keeps it, and nothing is done (exit code 9). What is left of the volume on the server
    /// is removed first. As many of the others as may collude and one more have to be there; with more, a wrong share
    /// is noticed. A repair that was interrupted is begun again. It needs no client's directory;
    /// that opens the volume afterwards, as before. Without the latest directory, all other servers
    /// have to be there, because a missing one may have newer records. If the directory is here and
    /// knows that the server has wrong shares, no --anyway is needed, and the server deals in
    /// evictions again afterwards. If it names newer records than the servers that answer hold, and
    /// another server is missing, nothing is done (exit code 15).
    #[command(after_help = REPAIR_EXAMPLES)]
    Repair(RepairArgs),
}

#[derive(Args)]
pub(crate) struct RepairArgs {
    /// Where the volume is: shares://HOST:PORT,HOST:PORT,HOST:PORT/NAME?server=KEY,KEY,KEY&key=FILE, with all of its servers.
    #[arg(value_parser = LocationParser)]
    pub(crate) volume: Location,
    /// The client's directory, if it is here [default: one for each volume, beside the user's other
    /// state].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) unlock: UnlockArgs,
    /// Which server: its place in the URL, from 1.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=7))]
    pub(crate) server: u8,
    /// Make it anew even though it is where the others are, because its shares were found to be
    /// wrong.
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Go on although other servers are missing and the latest client's directory is not here. The
    /// records that are copied may then be old: use it only if the missing servers are lost for
    /// good.
    #[arg(long)]
    pub(crate) without_missing: bool,
    /// Seconds in which to try to reach a server again after its link was lost [default: 60], and
    /// to open the volume if a server ends the link or has no connection left [default: 5].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) retry_for: Option<Duration>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
