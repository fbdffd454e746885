//! What can be typed about volumes.

use std::path::PathBuf;
use std::time::Duration;

use super::WorkloadName;
use crate::error::CliError;
use clap::{Args, Subcommand, ValueEnum};
use oblivio_lab::alloc_search::SEARCHED_LEAF_LEVEL;
use oblivio_volume::keys::Attempt;
use oblivio_volume::{DiskOptions, Schedule, SyncMoves, schemes};

/// Bytes, with a unit: `64M`, `1GiB`, `2P`, `4096`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "not a number".to_owned())?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        "e" | "eb" | "eib" => 60,
        _ => return Err("the unit is none of K, M, G, T, P, E (of 1024)".into()),
    };
    number.checked_mul(1 << shift).ok_or_else(|| "more bytes than 2^64".into())
}

/// A part of a hundred, with its sign: `1%`, `0.5%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or("a part of a hundred is such as 1%")?;
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("not a number from 0 to 100, such as 1%".into()),
    }
}

/// Seconds, up to a day.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("neither more than 0 nor at most 86400".into())
    }
}

/// Accesses a second: `2000/s`.
fn parse_rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").ok_or("a rate is so many accesses a second: 2000/s")?;
    match number.parse() {
        Ok(0) | Err(_) => Err("not a number above 0: a rate is such as 2000/s".into()),
        Ok(rate) => Ok(rate),
    }
}

/// Milliseconds above 0.
fn parse_millis(text: &str) -> Result<Duration, String> {
    let millis: f64 = text.parse().map_err(|_| "not a number of milliseconds".to_owned())?;
    if millis > 0.0 && millis <= 3_600_000.0 {
        Ok(Duration::from_secs_f64(millis / 1000.0))
    } else {
        Err("neither more than 0 nor at most an hour: a period is such as 8".into())
    }
}

/// What opens a volume. Never the secret itself: command lines are public.
#[derive(Args, Clone, Default)]
#[group(multiple = false)]
pub(crate) struct SecretArgs {
    /// A file nobody can guess, such as 32 random bytes.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// A file whose first line is the passphrase.
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// A command that prints the passphrase, run by the shell.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) passphrase_command: Option<String>,
}

/// A volume, and what is needed to open it.
#[derive(Args, Clone, Default)]
pub(crate) struct VolumeArgs {
    /// The file that holds the volume.
    pub(crate) volume: PathBuf,
    /// The client's directory [default: one for each volume, beside the user's other state].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

/// A volume that there is, and how it is opened.
#[derive(Args, Clone, Default)]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    pub(crate) place: VolumeArgs,
    #[command(flatten)]
    pub(crate) unlock: UnlockArgs,
}

/// What is tried to unlock a volume.
#[derive(Args, Clone, Copy)]
pub(crate) struct UnlockArgs {
    /// Try this key slot alone [default: all of them, one after the other].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) key_slot: Option<u8>,
    /// The most memory to spend on trying a passphrase in a key slot. All slots together may fill it 64
    /// times. Storage could ask for more before anything vouches for what it says; so say more only for
    /// a slot that you made so.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1G")]
    pub(crate) unlock_memory_max: u64,
}

impl UnlockArgs {
    /// How the library calls it.
    pub(crate) fn attempt(self) -> Attempt {
        let memory_kib_max = u32::try_from(self.unlock_memory_max >> 10).unwrap_or(u32::MAX);
        Attempt { slot: self.key_slot, memory_kib_max }
    }
}

/// As it is when nothing is said.
impl Default for UnlockArgs {
    fn default() -> Self {
        let Attempt { slot, memory_kib_max } = Attempt::default();
        Self { key_slot: slot, unlock_memory_max: u64::from(memory_kib_max) << 10 }
    }
}

#[derive(Args, Clone)]
pub(crate) struct WishArgs {
    /// How blocks are hidden: `raw` (RAW ORAM, for disks of any size), or `scan` (the trivial ORAM, in which every
    /// access reads everything, for disks of a few MiB). The options about slots, evictions, stash and tree top are
    /// those of `raw`.
    #[arg(long, value_name = "NAME", default_value = schemes::default().name())]
    pub(crate) scheme: String,
    /// Bytes of a block.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "4K")]
    pub(crate) block: u64,
    /// Slots of a bucket (Z) [default: 5].
    #[arg(long, value_name = "Z")]
    pub(crate) slots: Option<u16>,
    /// Accesses between evictions (A) [default: 5].
    #[arg(long, value_name = "A")]
    pub(crate) evict_period: Option<u32>,
    /// Blocks that may be left in the stash (C) [default: 64].
    #[arg(long, value_name = "C")]
    pub(crate) stash: Option<u32>,
    /// Bytes of buckets that the client keeps itself, at most [default: 32M].
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) tree_top: Option<u64>,
    /// Keep the blocks of those buckets in sets of so many, in which they are found by their address
    /// (IR-Stash); 0 for bucket by bucket. What is found so may be served without an access: see
    /// --serve-hits of `serve` and `mount`. Which blocks meet in a set decides how often
    /// the stash is full, and so how many evictions there are [default: 0].
    #[arg(long, value_name = "WAYS")]
    pub(crate) tree_top_ways: Option<u16>,
    /// Bytes of client memory for those buckets, the stash and the position map together. A position
    /// map that does not fit lies in the tree, which costs accesses; where that is not enough, the client
    /// keeps fewer buckets, which makes accesses move more. The cache and the data of requests under way
    /// come on top.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "40M")]
    pub(crate) client_memory: u64,
    /// Take the slots of each level from a file that `oblivio plan --alloc-output` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) alloc_from: Option<PathBuf>,
}

pub(crate) const PLAN_EXAMPLES: &str = "\
Examples:
  oblivio plan --size 1G
  oblivio plan --size 1T --block 64K --json
  oblivio plan --size 1G --alloc --alloc-output slots.json
  oblivio plan --size 1G --alloc-from slots.json

--alloc takes about a minute for 1G. What it finds depends on --slots, --evict-period, --stash and the depth
of the tree, and not on what the volume is used for.";

const ALLOC_HELP: &str = "\
Search how many slots each level needs (IR-Alloc), and show the plan with and without.

Fewer slots in the middle of the tree make an access move fewer bytes. What finds no place there waits in the \
stash, and where it fills up, evictions come ahead of their time. Storage sees that: it says something of \
how the volume is used. With --evictions-max 0% only what needed none is found, and with --alloc-workload \
scan what needed none in the worst case known.";

#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Bytes of the disk, such as 64M, 1G, 1T.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, required_unless_present = "sizes")]
    pub(crate) size: Option<u64>,
    /// Compare disks from 1 GiB to 16 TiB instead of planning one.
    #[arg(long, conflicts_with = "size")]
    pub(crate) sizes: bool,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    #[command(flatten)]
    pub(crate) alloc: AllocArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the slots of each level are searched.
#[derive(Args)]
pub(crate) struct AllocArgs {
    /// Search how many slots each level needs (IR-Alloc), and show the plan with and without.
    #[arg(long, conflicts_with_all = ["alloc_from", "sizes"], long_help = ALLOC_HELP)]
    pub(crate) alloc: bool,
    /// The part of all slots that may be lost.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "1%", requires = "alloc")]
    pub(crate) space_loss_max: f64,
    /// How much evictions ahead of their time may add to the paths that accesses read and write.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "15%", requires = "alloc")]
    pub(crate) evictions_max: f64,
    /// The level of the leaves of the tree that is searched, where the volume's is deeper. A level more
    /// takes twice the time.
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u8).range(1..=24), default_value_t = SEARCHED_LEAF_LEVEL, requires = "alloc")]
    pub(crate) alloc_level: u8,
    /// Which addresses the search asks for. A scan needs the most evictions.
    #[arg(long, value_enum, default_value_t = WorkloadName::Uniform, requires = "alloc")]
    pub(crate) alloc_workload: WorkloadName,
    /// Accesses counted for each profile, over both of its runs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2000..=1_000_000_000_000), default_value_t = 500_000, requires = "alloc")]
    pub(crate) alloc_accesses: u64,
    /// Where all randomness of the search comes from.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "alloc")]
    pub(crate) seed: u64,
    /// Save what was found and measured to this file, for --alloc-from. Replaced if there is one.
    #[arg(long, value_name = "FILE", requires = "alloc")]
    pub(crate) alloc_output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    pub(crate) at: VolumeArgs,
    /// Bytes of the disk, such as 64M, 1G, 1T.
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) size: u64,
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
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

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
    /// fixed rate hides the first of it and not the second.
    #[arg(long)]
    pub(crate) serve_hits: bool,
    /// When the moves of blocks become durable in the client's directory.
    #[arg(long, value_enum, default_value_t = SyncMovesName::Read)]
    pub(crate) sync_moves: SyncMovesName,
    /// Pass by the page cache of the system (`O_DIRECT`).
    #[arg(long)]
    pub(crate) direct: bool,
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
            record_view: None,
            after_tampering: false,
            rate: RateArgs::default(),
        }
    }
}

impl RunArgs {
    /// How the disk is run.
    pub(crate) fn disk_options(&self) -> DiskOptions {
        DiskOptions { cache_bytes_max: self.cache, schedule: self.rate.schedule() }
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
Closing takes as long as writing back half of --cache would, always.";

/// Accesses at a tick unless it is said.
const BURST: u16 = 16;

impl RateArgs {
    fn schedule(self) -> Option<Schedule> {
        let accesses = self.burst.unwrap_or(BURST);
        let of_rate = |rate| Duration::from_secs_f64(f64::from(accesses) / f64::from(rate));
        let period = self.period.or(self.rate.map(of_rate))?;
        let early_write_backs = !self.no_early_write_backs;
        Some(Schedule { period, accesses: usize::from(accesses), early_write_backs })
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

pub(crate) const BENCH_EXAMPLES: &str = "\
Examples:
  oblivio bench
  oblivio bench /mnt/disk --size 256M --seconds 2
  oblivio bench --queue-depth 1 --json

The volume takes some six times --size of room while it is measured. Each load but the first, which
writes the whole disk once, goes on for --seconds; what it has left in the cache is written back
before its time ends.";

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Where the volume and the client's directory are made [default: where the system keeps temporary
    /// files].
    pub(crate) directory: Option<PathBuf>,
    /// Bytes of the disk, such as 64M, 1G.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1G")]
    pub(crate) size: u64,
    /// How long each load goes on.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "5")]
    pub(crate) seconds: Duration,
    /// Requests in flight together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), default_value_t = 16)]
    pub(crate) queue_depth: u16,
    /// When the moves of blocks become durable in the client's directory.
    #[arg(long, value_enum, default_value_t = SyncMovesName::Read)]
    pub(crate) sync_moves: SyncMovesName,
    /// Pass by the page cache of the system (`O_DIRECT`).
    #[arg(long)]
    pub(crate) direct: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Give the volume one more key that opens it.
    Add(KeyAddArgs),
    /// List the key slots.
    List(KeyListArgs),
    /// Take a key away. Whoever kept an old copy of the superblock can still use it.
    Remove(KeyRemoveArgs),
}

#[derive(Args)]
pub(crate) struct KeyAddArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The new key: a file nobody can guess.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["new_passphrase_file", "new_passphrase_command"])]
    pub(crate) new_key_file: Option<PathBuf>,
    /// The new key: a file whose first line is the passphrase.
    #[arg(long, value_name = "FILE", conflicts_with = "new_passphrase_command")]
    pub(crate) new_passphrase_file: Option<PathBuf>,
    /// The new key: a command that prints the passphrase.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) new_passphrase_command: Option<String>,
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
pub(crate) struct KeyListArgs {
    /// The file that holds the volume.
    pub(crate) volume: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct KeyRemoveArgs {
    #[command(flatten)]
    pub(crate) at: OpenArgs,
    /// The number of the slot, as `key list` shows it.
    pub(crate) slot: u8,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
