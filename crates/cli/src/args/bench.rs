//! Arguments of `oblivio bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::SyncMovesName;
use super::values::{parse_seconds, parse_size};

pub(crate) const BENCH_EXAMPLES: &str = "\
Examples:
  oblivio bench
  oblivio bench /mnt/disk --size 256M --seconds 2
  oblivio bench --queue-depth 1 --json

The volume takes about six times --size of disk space while it is measured. Each load runs for
--seconds, except the first, which writes the whole disk once. The time of a load includes writing
back what it left in the cache.";

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Directory for the volume and the client's directory [default: the system's directory for
    /// temporary files].
    pub(crate) directory: Option<PathBuf>,
    /// Bytes of the disk, such as 64M, 1G.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1G")]
    pub(crate) size: u64,
    /// Number of seconds that each load runs.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "5")]
    pub(crate) seconds: Duration,
    /// Requests in flight at once.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256),
        default_value_t = 16
    )]
    pub(crate) queue_depth: u16,
    /// Point at which the moves of blocks become durable in the client's directory.
    #[arg(long, value_enum, default_value_t = SyncMovesName::Read)]
    pub(crate) sync_moves: SyncMovesName,
    /// Bypass the page cache of the system (`O_DIRECT`).
    #[arg(long)]
    pub(crate) direct: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
