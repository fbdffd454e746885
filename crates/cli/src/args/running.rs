//! How an open volume is run.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use oblivio_volume::{DiskOptions, Schedule, SyncMoves};

use super::values::{parse_millis, parse_rate, parse_seconds, parse_size};
use crate::error::CliError;

/// How an open volume is run.
#[derive(Args, Clone)]
pub(crate) struct RunArgs {
    /// Bytes of the write-back cache. Without a fixed rate storage sees how much the cache answers, and when it
    /// writes back. With 0, each request makes its accesses at once, and reads and writes of whole blocks
    /// look alike.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "16M")]
    pub(crate) cache: u64,
    /// Serve blocks that the client finds by their address without an access: those in the stash, and
    /// in the tree top of a volume made with --tree-top-ways. Storage then sees how often blocks are
    /// asked for again, and the accesses that are left tell something of which blocks are in use. A
    /// fixed rate hides the first of it and not the second. Volumes over ranges refuse it.
    #[arg(long)]
    pub(crate) serve_hits: bool,
    /// When the moves of blocks become durable in the client's directory.
    #[arg(long, value_enum, default_value_t = SyncMovesName::Read)]
    pub(crate) sync_moves: SyncMovesName,
    /// Pass by the page cache of the system (`O_DIRECT`).
    #[arg(long)]
    pub(crate) direct: bool,
    /// Seconds in which to try to reach the server of a volume again after its link was lost
    /// [default: 60], and to open the volume if the server ends the link or has no connection left
    /// [default: 5]. Requests are sent again over the new link. After that time every request
    /// fails, and the volume recovers when it is opened next.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) retry_for: Option<Duration>,
    /// Record what storage sees, to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) record_view: Option<PathBuf>,
    /// Open a volume whose storage was found to be changed: it holds again what it held. What found the
    /// change is repeated, on the same paths.
    #[arg(long)]
    pub(crate) after_tampering: bool,
    #[command(flatten)]
    pub(crate) rate: RateArgs,
}

/// As it is run when nothing is said.
impl Default for RunArgs {
    fn default() -> Self {
        Self {
            cache: DiskOptions::default().cache_bytes_max,
            serve_hits: false,
            sync_moves: SyncMovesName::default(),
            direct: false,
            retry_for: None,
            record_view: None,
            after_tampering: false,
            rate: RateArgs::default(),
        }
    }
}

impl RunArgs {
    /// How the disk is run.
    pub(crate) fn disk_options(&self) -> DiskOptions {
        DiskOptions::default().with_cache_bytes_max(self.cache).with_schedule(self.rate.schedule())
    }
}

/// When accesses are made.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct RateArgs {
    /// Make so many accesses a second, always, whatever is asked for.
    #[arg(long, value_name = "N/s", value_parser = parse_rate, conflicts_with = "period", long_help = RATE_HELP)]
    rate: Option<u32>,
    /// The same, with the time from tick to tick in milliseconds.
    #[arg(long, value_name = "MS", value_parser = parse_millis)]
    period: Option<Duration>,
    /// Accesses at each tick of a fixed rate [default: 16].
    #[arg(long, value_name = "ACCESSES", value_parser = clap::value_parser!(u16).range(1..=4096))]
    burst: Option<u16>,
    /// Write blocks back only when they must be, never early in accesses that nobody needs (IR-DWB).
    /// Storage sees the same, and writes wait longer: this is to measure by how much.
    #[arg(long)]
    no_early_write_backs: bool,
}

const RATE_HELP: &str = "\
Make so many accesses a second, always, whatever is asked for.

Without it, storage sees how many accesses are made and when, and so when the disk is used, how much, \
and how often a program flushes. With it, accesses come in batches of --burst at the ticks of a clock, \
and what storage sees is a function of time alone: idle, busy, reading, writing, trimming and flushing \
look alike.

It does not hide when the volume is opened and closed, and so the total time; its size and parameters; \
that there is a fixed rate, and which; how long a batch takes once it has begun, and that a tick is \
left out because the batch before was not ready. Choose a rate that this machine keeps when it is \
idle. A read waits for the next tick, a flush for as many as it takes to write back what is dirty. \
Closing takes as long as writing back half of --cache would, or all of a smaller disk, always. The \
client's directory takes in a block for each access, and a whole state at each checkpoint, whatever is done.";

/// Accesses at a tick unless it is said.
const BURST: u16 = 16;

impl RateArgs {
    pub(crate) fn schedule(self) -> Option<Schedule> {
        let accesses = self.burst.unwrap_or(BURST);
        let of_rate = |rate| Duration::from_secs_f64(f64::from(accesses) / f64::from(rate));
        let period = self.period.or(self.rate.map(of_rate))?;
        let early_write_backs = !self.no_early_write_backs;
        Some(Schedule::new(period, usize::from(accesses)).with_early_write_backs(early_write_backs))
    }

    /// Whether it can be kept.
    pub(crate) fn check(self) -> Result<(), CliError> {
        match self.schedule() {
            None if self.burst.is_some() => Err(CliError::Input(
                "--burst says how many accesses a tick makes: say with --rate or --period when \
                 ticks are"
                    .into(),
            )),
            None if self.no_early_write_backs => Err(CliError::Input(
                "--no-early-write-backs is about the accesses of a fixed rate: say with --rate or \
                 --period which"
                    .into(),
            )),
            None => Ok(()),
            Some(schedule) => Ok(schedule.check()?),
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyncMovesName {
    /// Before storage sees them: no crash ever links two accesses.
    #[default]
    Read,
    /// With flushes: faster where syncs are slow; a power loss may link the latest accesses with later
    /// ones.
    Flush,
}

impl From<SyncMovesName> for SyncMoves {
    fn from(name: SyncMovesName) -> Self {
        match name {
            SyncMovesName::Read => Self::BeforeReads,
            SyncMovesName::Flush => Self::AtFlush,
        }
    }
}
