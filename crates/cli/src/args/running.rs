//! Options for running an open volume.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use oblivio_volume::{DiskOptions, Schedule, SyncMoves};

use super::values::{parse_millis, parse_rate, parse_seconds, parse_size};
use crate::error::CliError;

/// Options for running an open volume.
#[derive(Args, Clone)]
pub(crate) struct RunArgs {
    /// Bytes of the write-back cache. Without a fixed rate storage sees how many requests the cache
    /// answers, and when it writes back. With 0, each request makes its accesses at once, and reads
    /// and writes of whole blocks look alike.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "16M")]
    pub(crate) cache: u64,
    /// Serve blocks that the client finds by their address without an access: blocks in the stash,
    /// and in the tree top of a volume made with --tree-top-ways. Storage then sees how often
    /// blocks are accessed again, and the remaining accesses reveal something about which blocks
    /// are in use. A fixed rate hides the former and not the latter. A volume with ranges refuses
    /// this option.
    #[arg(long)]
    pub(crate) serve_hits: bool,
    /// Point at which the moves of blocks become durable in the client's directory.
    #[arg(long, value_enum, default_value_t = SyncMovesName::Read)]
    pub(crate) sync_moves: SyncMovesName,
    /// Bypass the page cache of the system (`O_DIRECT`).
    #[arg(long)]
    pub(crate) direct: bool,
    /// Seconds to keep reconnecting to a volume's server after the link was lost [default: 60], and
    /// to keep trying to open the volume if the server ends the link or has no free connection
    /// [default: 5]. Requests are sent again over the new link. After this time every request
    /// fails, and the volume recovers when it is opened next.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) retry_for: Option<Duration>,
    /// Record what storage sees to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) record_view: Option<PathBuf>,
    /// Open a volume in which tampering was found, after its storage was restored. The accesses
    /// that found the tampering are repeated, on the same paths.
    #[arg(long)]
    pub(crate) after_tampering: bool,
    #[command(flatten)]
    pub(crate) rate: RateArgs,
}

/// The values if no option is given.
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
    /// The options of the disk.
    pub(crate) fn disk_options(&self) -> DiskOptions {
        DiskOptions::default().with_cache_bytes_max(self.cache).with_schedule(self.rate.schedule())
    }
}

/// Options of a fixed rate.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct RateArgs {
    /// Make this number of accesses per second at all times, whatever is requested.
    #[arg(
        long,
        value_name = "N/s",
        value_parser = parse_rate,
        conflicts_with = "period",
        long_help = RATE_HELP
    )]
    rate: Option<u32>,
    /// Make accesses at a fixed rate: the time from tick to tick in milliseconds.
    #[arg(long, value_name = "MS", value_parser = parse_millis)]
    period: Option<Duration>,
    /// Number of accesses at each tick of a fixed rate [default: 16].
    #[arg(long, value_name = "ACCESSES", value_parser = clap::value_parser!(u16).range(1..=4096))]
    burst: Option<u16>,
    /// Write blocks back only when necessary, never early in dummy accesses (IR-DWB). Storage sees
    /// no difference, and writes wait longer: use this to measure by how much.
    #[arg(long)]
    no_early_write_backs: bool,
}

const RATE_HELP: &str = "\
Make this number of accesses per second at all times, whatever is requested.

Without it, storage sees how many accesses are made and when. So it learns when and how much the \
disk is used, and how often a program flushes. With it, accesses come in batches of --burst at the \
ticks of a clock, and what storage sees is a function of time alone: idle, busy, reading, writing, \
trimming and flushing look alike.

It does not hide when the volume is opened and closed, and so the total time; the volume's size \
and parameters; that there is a fixed rate, and its value; how long a batch takes once it has \
begun; and that a tick is left out because the previous batch was not finished. Choose a rate that \
this machine keeps when it is idle. A read waits for the next tick. A flush waits for enough ticks \
to write back all dirty blocks. Closing always takes as long as writing back half of --cache, or \
the whole disk if that is smaller. The client's directory receives a block for each access, and a \
whole state at each checkpoint, whatever the disk does.";

/// Default number of accesses at a tick.
const BURST: u16 = 16;

impl RateArgs {
    pub(crate) fn schedule(self) -> Option<Schedule> {
        let accesses = self.burst.unwrap_or(BURST);
        let of_rate = |rate| Duration::from_secs_f64(f64::from(accesses) / f64::from(rate));
        let period = self.period.or(self.rate.map(of_rate))?;
        let early_write_backs = !self.no_early_write_backs;
        Some(Schedule::new(period, usize::from(accesses)).with_early_write_backs(early_write_backs))
    }

    /// Checks that the other options of a fixed rate come with a rate or a period, and that the
    /// schedule is valid.
    pub(crate) fn check(self) -> Result<(), CliError> {
        match self.schedule() {
            None if self.burst.is_some() => Err(CliError::Input(
                "--burst sets the accesses of a tick, but there are no ticks: add --rate or \
                 --period"
                    .into(),
            )),
            None if self.no_early_write_backs => Err(CliError::Input(
                "--no-early-write-backs needs a fixed rate: add --rate or --period".into(),
            )),
            None => Ok(()),
            Some(schedule) => Ok(schedule.check()?),
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyncMovesName {
    /// Durable before storage sees them. No crash ever links two accesses.
    #[default]
    Read,
    /// Durable with the next flush. Faster if syncs are slow, but after a power loss, storage may
    /// link the latest accesses to later ones.
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
